/* The command line: one table of options, each command names those it takes. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "kith/backend.h"
#include "kith/report.h"
#include "kith/text.h"

static const struct cli_option_text options[] = {
#define KITH_X(name, text, argument, help) {text, argument, help},
    CLI_OPTIONS(KITH_X)
#undef KITH_X
};

struct cli_option_text kith_cli_option_text(enum cli_option option)
{
    return options[option];
}

/* Of a message: two paths and what is said about them. */
enum { LINE_BYTES = 4096 };

int kith_cli_fail(const struct cli_arguments *arguments, int code,
                  const char *format, ...)
{
    char line[LINE_BYTES];
    kith_cli_progress_end();
    fflush(stdout);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(line, sizeof line, format, list);
    va_end(list);
    /* Names in a file may hold what a terminal obeys. */
    for (char *c = line; *c != '\0'; c++)
        *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
    fprintf(stderr, "kith%s%s: %s\n", arguments->command[0] == '\0' ? "" : " ",
            arguments->command, line);
    return code;
}

int kith_cli_check(const struct cli_arguments *arguments, enum kith_err err,
                   const char *error)
{
    return err == KITH_OK
               ? KITH_EXIT_OK
               : kith_cli_fail(arguments, kith_cli_exit_of(err), "%s", error);
}

int kith_cli_flush(const struct cli_arguments *arguments, int code)
{
    return fflush(stdout) == 0
               ? code
               : kith_cli_fail(arguments, KITH_EXIT_WRITE,
                               "cannot write to standard output: %s",
                               strerror(errno));
}

bool kith_cli_given(const struct cli_arguments *arguments,
                    enum cli_option option)
{
    return arguments->values[option] != NULL;
}

int kith_cli_unknown(const struct cli_arguments *arguments, const char *what,
                     const char *word, const char *const *names)
{
    const char *near = kith_text_nearest(word, names);
    char allowed[512] = "";
    size_t at = 0;
    for (unsigned i = 0; names[i] != NULL; i++)
        at = kith_text_add(allowed, sizeof allowed, at, "%s%s",
                           i == 0 ? "" : ", ", names[i]);
    return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                         "found the unknown %s \"%.60s\"; allowed: %s%s%s%s",
                         what, word, allowed,
                         near == NULL ? "" : "; did you mean \"",
                         near == NULL ? "" : near, near == NULL ? "" : "\"?");
}

int kith_cli_number(const struct cli_arguments *arguments,
                    enum cli_option option, uint64_t low, uint64_t high,
                    uint64_t *value)
{
    uint64_t number;
    const char *text = arguments->values[option];
    if (text == NULL)
        return KITH_EXIT_OK;
    if (kith_text_u64(text, &number) != KITH_OK || number < low ||
        number > high)
        return kith_cli_fail(
            arguments, KITH_EXIT_USAGE,
            "%s: found \"%.60s\"; allowed: a whole number from %llu to %llu",
            options[option].name, text, (unsigned long long)low,
            (unsigned long long)high);
    *value = number;
    return KITH_EXIT_OK;
}

int kith_cli_target(const struct cli_arguments *arguments,
                    struct kith_target *target)
{
    const char *loss = arguments->values[CLI_TARGET_LOSS];
    const char *text = arguments->values[CLI_TARGET];
    *target = (struct kith_target){.value = NAN};
    if (loss != NULL && text != NULL)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--target-loss X is --target loss=X: give one");
    if (loss != NULL && (kith_text_double(loss, &target->value) != KITH_OK ||
                         target->value <= 0))
        return kith_cli_fail(
            arguments, KITH_EXIT_USAGE,
            "--target-loss: found \"%.60s\"; allowed: a number above 0", loss);
    if (text == NULL)
        return KITH_EXIT_OK;
    target->is_accuracy = strncmp(text, "accuracy=", 9) == 0;
    if ((!target->is_accuracy && strncmp(text, "loss=", 5) != 0) ||
        kith_text_double(strchr(text, '=') + 1, &target->value) != KITH_OK ||
        target->value <= 0 || (target->is_accuracy && target->value > 1))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--target: found \"%.60s\"; allowed: accuracy=X, "
                             "above 0 and up to 1, or loss=X, above 0",
                             text);
    return KITH_EXIT_OK;
}

/* An option that is a key of the file under a short name. */
static int add_setting(const struct cli_arguments *arguments,
                       enum cli_option option, const char *key, uint64_t least,
                       uint64_t most, struct cli_settings *settings,
                       char text[CLI_SETTING_BYTES])
{
    uint64_t number = 0;
    const int code = kith_cli_number(arguments, option, least, most, &number);
    if (code != KITH_EXIT_OK || !kith_cli_given(arguments, option))
        return code;
    (void)snprintf(text, CLI_SETTING_BYTES, "%s=%llu", key,
                   (unsigned long long)number);
    settings->texts[settings->count++] = text;
    return KITH_EXIT_OK;
}

int kith_cli_settings(const struct cli_arguments *arguments,
                      struct cli_settings *settings)
{
    /* A simulation's threads are its own, not the arithmetic's. */
    const bool trains = strcmp(arguments->command, "train") == 0;
    settings->count = arguments->set_count;
    memcpy(settings->texts, arguments->sets, sizeof arguments->sets);
    int code = add_setting(arguments, CLI_SEED, "seed", 0, UINT64_MAX, settings,
                           settings->seed);
    if (code == KITH_EXIT_OK && trains)
        code = add_setting(arguments, CLI_THREADS, "compute.threads", 1,
                           KITH_POOL_THREADS_MAX, settings, settings->threads);
    return code;
}

/* --out is a file for those that say so, else a folder. */
static const char *argument_of(const struct cli_command *command,
                               unsigned option)
{
    return option == CLI_OUT && command->out != NULL ? "FILE"
                                                     : options[option].argument;
}

bool kith_cli_takes(const struct cli_command *command, unsigned option)
{
    const uint8_t *taken = command->options;
    if (option == CLI_HELP || taken == NULL)
        return option == CLI_HELP;
    while (*taken != CLI_OPTION_COUNT && *taken != option)
        taken++;
    return *taken == option;
}

void kith_cli_help(const struct cli_command *command)
{
    printf("usage: kith %s %s\n\n%s.\n\n", command->name, command->usage,
           command->summary);
    for (unsigned i = 0; i < CLI_OPTION_COUNT; i++) {
        if (!kith_cli_takes(command, i))
            continue;
        char left[64];
        const char *argument = argument_of(command, i);
        snprintf(left, sizeof left, "%s%s%s", options[i].name,
                 argument == NULL ? "" : " ", argument == NULL ? "" : argument);
        const bool own = i == CLI_OUT && command->out != NULL;
        printf("  %-18s %s\n", left, own ? command->out : options[i].help);
    }
    printf("\n%s\n", command->details);
}

/* The option that `text` (up to '=') names and `command` takes, or none. */
static int find_option(const struct cli_command *command, const char *text,
                       size_t length)
{
    for (unsigned i = 0; i < CLI_OPTION_COUNT; i++)
        if (strlen(options[i].name) == length &&
            memcmp(options[i].name, text, length) == 0 &&
            kith_cli_takes(command, i))
            return (int)i;
    return -1;
}

static int unknown_option(const struct cli_command *command,
                          const struct cli_arguments *arguments,
                          const char *text, size_t length)
{
    const char *names[CLI_OPTION_COUNT + 1];
    char word[64];
    unsigned count = 0;
    for (unsigned i = 0; i < CLI_OPTION_COUNT; i++)
        if (kith_cli_takes(command, i))
            names[count++] = options[i].name;
    names[count] = NULL;
    snprintf(word, sizeof word, "%.*s", (int)(length < 60 ? length : 60), text);
    return kith_cli_unknown(arguments, "option", word, names);
}

/* argv[*at] is an option; its value may be argv[*at + 1]. */
static int parse_option(const struct cli_command *command, int argc,
                        char **argv, int *at, struct cli_arguments *arguments)
{
    const char *text = argv[*at];
    const size_t length = strcspn(text, "=");
    const int option = find_option(command, text, length);
    if (option < 0)
        return unknown_option(command, arguments, text, length);
    const char *value = text[length] == '=' ? text + length + 1 : NULL;
    if (options[option].argument == NULL) {
        if (value != NULL)
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "%s takes no value", options[option].name);
        value = "";
    } else if (value == NULL && options[option].argument[0] == '[') {
        /* Optional: the next word, unless it is an option. */
        value = "";
        if (*at + 1 < argc && argv[*at + 1][0] != '-')
            value = argv[++*at];
    } else if (value == NULL) {
        if (*at + 1 >= argc)
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "%s needs a value: %s %s",
                                 options[option].name, options[option].name,
                                 argument_of(command, (unsigned)option));
        value = argv[++*at];
    }
    arguments->values[option] = value;
    if (option == CLI_SWEEP) {
        if (arguments->sweep_count == KITH_SETTINGS_MAX)
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "--sweep: given more than %u times",
                                 KITH_SETTINGS_MAX);
        arguments->sweeps[arguments->sweep_count++] = value;
    }
    if (option == CLI_SET) {
        if (strchr(value, '=') == NULL || value[0] == '=')
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "--set: found \"%.60s\"; allowed: KEY=VALUE, "
                                 "such as gossip.every=4",
                                 value);
        if (arguments->set_count + 1 >= CLI_WORDS_MAX)
            return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                 "--set: given more than %u times",
                                 CLI_WORDS_MAX - 2);
        arguments->sets[arguments->set_count++] = value;
    }
    return KITH_EXIT_OK;
}

int kith_cli_parse(const struct cli_command *command, int argc, char **argv,
                   struct cli_arguments *arguments)
{
    memset(arguments, 0, sizeof *arguments);
    arguments->command = command->name;
    bool words_only = false;
    for (int i = 0; i < argc; i++) {
        int code = KITH_EXIT_OK;
        if (words_only || argv[i][0] != '-' || argv[i][1] == '\0') {
            if (arguments->word_count == CLI_WORDS_MAX)
                return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                     "too many arguments");
            arguments->words[arguments->word_count++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0)
            words_only = true;
        else if (strcmp(argv[i], "-h") == 0)
            arguments->values[CLI_HELP] = "";
        else
            code = parse_option(command, argc, argv, &i, arguments);
        if (code != KITH_EXIT_OK)
            return code;
    }
    if (kith_cli_given(arguments, CLI_HELP))
        return KITH_EXIT_OK;
    if (arguments->word_count < command->words_min ||
        arguments->word_count > command->words_max)
        return kith_cli_fail(
            arguments, KITH_EXIT_USAGE,
            "found %u arguments; usage: kith %s %.*s; see kith %s --help",
            arguments->word_count, command->name,
            (int)strcspn(command->usage, "\n"), command->usage, command->name);
    return KITH_EXIT_OK;
}
