/* Goal: a program finds out by itself whether it can use a GPU, says why not in
 * a line that names what to do, and never loads a module that is damaged or was
 * built for another version.
 * Method: a child per case, each with its own KITH_CUDA_MODULE: nothing, text,
 * a truncated module, another library, one with another version written into
 * it, and the emulation of tests/cuda with and without a device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kith/backend.h"
#include "kith/cuda_module.h"

#define EMULATION "tests/cuda/kith-cuda-host.so"
#define SCRATCH "test_cuda_module.so"

/* What a fresh process says: why cuda is missing ("" where it is not), then
 * what `auto` is. */
struct answer {
    char missing[1024], automatic[64];
};

static void ask_here(int pipe_end)
{
    struct answer answer = {"", ""};
    const struct kith_backend *const cuda = kith_backend_find("cuda");
    const char *const why = cuda->missing();
    /* The same when asked again. */
    if (why != cuda->missing())
        _exit(1);
    (void)snprintf(answer.missing, sizeof answer.missing, "%s",
                   why == NULL ? "" : why);
    (void)snprintf(answer.automatic, sizeof answer.automatic, "%s",
                   kith_backend_auto()->name);
    _exit(write(pipe_end, &answer, sizeof answer) == sizeof answer ? 0 : 1);
}

static struct answer ask(const char *module)
{
    int ends[2], status;
    struct answer answer = {"", ""};
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (module != NULL)
            (void)setenv("KITH_CUDA_MODULE", module, 1);
        else
            (void)unsetenv("KITH_CUDA_MODULE");
        ask_here(ends[1]);
    }
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], &answer, sizeof answer), sizeof answer);
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return answer;
}

static void assert_refused(const char *module, const char *because)
{
    const struct answer answer = ask(module);
    assert_string_equal(answer.automatic, "cpu");
    if (strstr(answer.missing, module) == NULL ||
        strstr(answer.missing, because) == NULL)
        fail_msg("\"%s\" does not name %s and \"%s\"", answer.missing, module,
                 because);
}

/* The emulation's bytes; skips where it was not built. */
static char *emulation(size_t *size)
{
    FILE *const file = fopen(EMULATION, "rb");
    if (file == NULL)
        skip();
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    char *const bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    (void)fclose(file);
    return bytes;
}

static void put(const char *bytes, size_t size)
{
    FILE *const file = fopen(SCRATCH, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static int take_away(void **state)
{
    (void)state;
    (void)unlink(SCRATCH);
    return 0;
}

static void test_not_there(void **state)
{
    (void)state;
    assert_refused("/nowhere/kith-cuda.so", "is not there");
}

static void test_text(void **state)
{
    (void)state;
    put("no library", 10);
    assert_refused("./" SCRATCH, "damaged");
    put("", 0);
    assert_refused("./" SCRATCH, "damaged");
}

/* Cut anywhere it is refused before it is mapped. */
static void test_truncated(void **state)
{
    (void)state;
    size_t size;
    char *const bytes = emulation(&size);
    for (unsigned part = 1; part < 8; part++) {
        put(bytes, size * part / 8);
        assert_refused("./" SCRATCH, "damaged");
    }
    put(bytes, size - 1);
    assert_refused("./" SCRATCH, "damaged");
    free(bytes);
}

/* A library, but none of ours. */
static void test_other_library(void **state)
{
    (void)state;
    char line[512], *path = NULL;
    FILE *const maps = fopen("/proc/self/maps", "r");
    if (maps == NULL)
        skip();
    while (path == NULL && fgets(line, sizeof line, maps) != NULL) {
        path = strchr(line, '/');
        if (path != NULL && strstr(path, "cmocka") == NULL)
            path = NULL;
    }
    (void)fclose(maps);
    if (path == NULL)
        skip();
    path[strcspn(path, "\n")] = '\0';
    assert_refused(path, "is not a CUDA module of kith");
}

/* Writes over the first bytes after the module's magic word. */
static void spoil(size_t offset, const char *with, size_t length)
{
    size_t size, found = 0;
    char *const bytes = emulation(&size);
    for (size_t i = 0; i + sizeof KITH_CUDA_MAGIC < size; i++) {
        /* The record, not the text that a check compares with: a version
         * follows it. */
        if (memcmp(bytes + i, KITH_CUDA_MAGIC, sizeof KITH_CUDA_MAGIC) == 0 &&
            memcmp(bytes + i + sizeof KITH_CUDA_MAGIC, PACKAGE_VERSION,
                   sizeof PACKAGE_VERSION) == 0) {
            memcpy(bytes + i + offset, with, length);
            found++;
        }
    }
    assert_true(found > 0);
    put(bytes, size);
    free(bytes);
}

static void test_other_version(void **state)
{
    (void)state;
    const size_t version = sizeof KITH_CUDA_MAGIC;
    spoil(version, "9.9.9", 6);
    assert_refused("./" SCRATCH, "of another version (9.9.9");
    /* The same version, other contracts. */
    spoil(offsetof(struct kith_cuda_module, abi), "\7\0\0", 4);
    assert_refused("./" SCRATCH, "interface 7");
    spoil(offsetof(struct kith_cuda_module, backend_bytes), "\10\0\0", 4);
    assert_refused("./" SCRATCH, "of another version");
    spoil(0, "kith-some-module", version);
    assert_refused("./" SCRATCH, "is not a CUDA module of kith");
}

static void test_runs(void **state)
{
    (void)state;
    if (access(EMULATION, R_OK) != 0)
        skip();
    const struct answer answer = ask(EMULATION);
    assert_string_equal(answer.missing, "");
    assert_string_equal(answer.automatic, "cuda");
}

static void test_no_device(void **state)
{
    (void)state;
    if (access(EMULATION, R_OK) != 0)
        skip();
    (void)setenv("KITH_EMULATE_NONE", "1", 1);
    struct answer answer = ask(EMULATION);
    (void)unsetenv("KITH_EMULATE_NONE");
    assert_non_null(strstr(answer.missing, "no GPU"));
    assert_string_equal(answer.automatic, "cpu");
    (void)setenv("CUDA_VISIBLE_DEVICES", "", 1);
    answer = ask(EMULATION);
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    assert_non_null(strstr(answer.missing, "CUDA_VISIBLE_DEVICES"));
    assert_string_equal(answer.automatic, "cpu");
}

/* The module that this build made, if it made one: it loads, and either runs
 * or says what the machine lacks. */
static void test_own(void **state)
{
    (void)state;
    if (access("kith-cuda.so", R_OK) != 0)
        skip();
    const struct answer answer = ask("./kith-cuda.so");
    print_message("kith-cuda.so: %s\n",
                  answer.missing[0] == '\0' ? "runs here" : answer.missing);
    assert_null(strstr(answer.missing, "does not load: ./"));
    assert_null(strstr(answer.missing, "version"));
    assert_string_equal(answer.automatic,
                        answer.missing[0] == '\0' ? "cuda" : "cpu");
}

/* Nothing said: beside the program, in the library folder, or a line that says
 * where it was looked for. */
static void test_nothing_said(void **state)
{
    (void)state;
    const struct answer answer = ask(NULL);
    if (answer.missing[0] != '\0' && access("kith-cuda.so", R_OK) != 0)
        assert_non_null(strstr(answer.missing, "kith-cuda.so"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_there),
        cmocka_unit_test_teardown(test_text, take_away),
        cmocka_unit_test_teardown(test_truncated, take_away),
        cmocka_unit_test(test_other_library),
        cmocka_unit_test_teardown(test_other_version, take_away),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_nothing_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
