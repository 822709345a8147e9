# A unit test is tests/unit/test_NAME.c and one name here.
LDADD = $(KITH_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS +=
