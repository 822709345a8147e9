/* Error codes of every fallible function.
 *
 * Three kinds of trouble are kept apart: a bug is an assertion (assert.h), an
 * operating fault is one of these codes, a peer's misbehaviour is a counter.
 * 0 is success, the others are negative; results go through out-pointers. */
#ifndef KITH_ERR_H
#define KITH_ERR_H

/* X(name, value, text) */
#define KITH_ERRORS(X)                                                         \
    X(KITH_OK, 0, "success")                                                   \
    X(KITH_EINVAL, -1, "invalid value")                                        \
    X(KITH_ENOMEM, -2, "out of memory")                                        \
    X(KITH_EIO, -3, "input or output failed")                                  \
    X(KITH_ENOSPC, -4, "no space left on device")                              \
    X(KITH_EPERM, -5, "permission denied")                                     \
    X(KITH_ENOENT, -6, "no such file or name")                                 \
    X(KITH_EEXIST, -7, "already exists")                                       \
    X(KITH_EPARSE, -8, "malformed input")                                      \
    X(KITH_ELIMIT, -9, "a limit was exceeded")                                 \
    X(KITH_EBUSY, -10, "busy")                                                 \
    X(KITH_EAGAIN, -11, "more input is needed")                                \
    X(KITH_EAUTH, -12, "authentication failed")                                \
    X(KITH_EEXPIRED, -13, "expired or not yet valid")                          \
    X(KITH_EREVOKED, -14, "revoked")                                           \
    X(KITH_EVERSION, -15, "unsupported version or suite")                      \
    X(KITH_EMISMATCH, -16, "model or configuration differs")                   \
    X(KITH_ECLOSED, -17, "closed")                                             \
    X(KITH_EDEVICE, -18, "device failed")                                      \
    X(KITH_EUNSUPPORTED, -19, "not supported by this build")                   \
    X(KITH_ENONFINITE, -20, "a value is not finite")                           \
    X(KITH_ETIMEOUT, -21, "timed out")                                         \
    X(KITH_EADDRINUSE, -22, "address already in use")                          \
    X(KITH_EALONE, -23, "nobody to exchange with")

#define KITH_X(name, value, text) name = value,
enum kith_err { KITH_ERRORS(KITH_X) };
#undef KITH_X

#if defined(__GNUC__)
#define KITH_MUST_CHECK __attribute__((warn_unused_result))
#define KITH_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define KITH_MUST_CHECK
#define KITH_PRINTF(f, a)
#endif

/* What stands between the two has C linkage in C++, too: the headers that CUDA
 * units include. */
#ifdef __cplusplus
#define KITH_BEGIN_DECLS extern "C" {
#define KITH_END_DECLS }
#else
#define KITH_BEGIN_DECLS
#define KITH_END_DECLS
#endif

KITH_BEGIN_DECLS

/* The text of the table above; never NULL, "unknown error" for other values. */
const char *kith_err_text(enum kith_err err);

KITH_END_DECLS

#endif
