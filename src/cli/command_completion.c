/* kith completion: what a shell completes, from the table of commands and
 * options and that of an experiment's keys.
 *
 * Words before the command are commands, words that begin with a dash its
 * options, those behind --set and --sweep keys, all others files. Installed
 * where the three shells look. Test: tests/integration/test_cli_completion.sh
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "kith/experiment.h"

enum shell { BASH, ZSH, FISH, SHELLS };
static const char *const shells[] = {"bash", "zsh", "fish", NULL};

/* A command's options, one after another: false behind the last. */
static bool next_option(const struct cli_command *command, int *at,
                        struct cli_option_text *option)
{
    while (*at < CLI_OPTION_COUNT) {
        const int here = (*at)++;
        if (kith_cli_takes(command, (unsigned)here)) {
            *option = kith_cli_option_text((enum cli_option)here);
            return true;
        }
    }
    return false;
}

/* Inside single quotes of that shell; of zsh what parts a description, too. */
static void print_quoted(enum shell shell, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs(shell == FISH ? "\\'" : "'\\''", stdout);
            continue;
        }
        if ((shell == FISH && *text == '\\') ||
            (shell == ZSH && strchr("[]:\\", *text) != NULL))
            putchar('\\');
        putchar(*text);
    }
}

static void print_keys(const char *between)
{
    struct kith_experiment_key key;
    for (unsigned i = 0; kith_experiment_key(i, &key); i++)
        printf("%s%s=", i == 0 ? "" : between, key.path);
}

static void print_bash(void)
{
    const struct cli_command *command;
    struct cli_option_text option;
    puts("# Completion of kith for bash, written by `kith completion bash`.\n"
         "_kith() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} options= keys=\n"
         "    local before=${COMP_WORDS[COMP_CWORD-1]}\n"
         "    if [ \"$COMP_CWORD\" -eq 1 ]; then");
    fputs("        COMPREPLY=($(compgen -W '", stdout);
    for (size_t i = 0; (command = kith_cli_command(i)) != NULL; i++)
        printf("%s%s", i == 0 ? "" : " ", command->name);
    puts(" --help --version' -- \"$word\"))\n        return\n    fi\n"
         "    case ${COMP_WORDS[1]} in");
    for (size_t i = 0; (command = kith_cli_command(i)) != NULL; i++) {
        printf("    %s) options='", command->name);
        for (int at = 0, n = 0; next_option(command, &at, &option); n++)
            printf("%s%s", n == 0 ? "" : " ", option.name);
        puts("' ;;");
    }
    fputs("    esac\n"
          "    case $before in\n"
          "    --set | --sweep)\n"
          "        keys='",
          stdout);
    print_keys(" ");
    puts("'\n"
         "        COMPREPLY=($(compgen -W \"$keys\" -- \"$word\"))\n"
         "        compopt -o nospace\n"
         "        return ;;\n"
         "    esac\n"
         "    case $word in\n"
         "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
         "    esac\n"
         "}\n"
         "complete -o filenames -F _kith kith");
}

static void print_zsh(void)
{
    const struct cli_command *command;
    struct cli_option_text option;
    puts("#compdef kith\n"
         "# Completion of kith for zsh, written by `kith completion zsh`.\n"
         "_kith() {\n"
         "    local -a commands keys");
    fputs("    keys=(", stdout);
    print_keys(" ");
    puts(")\n    commands=(");
    for (size_t i = 0; (command = kith_cli_command(i)) != NULL; i++) {
        printf("        '%s:", command->name);
        print_quoted(ZSH, command->summary);
        puts("'");
    }
    puts("    )\n"
         "    if (( CURRENT == 2 )); then\n"
         "        _describe command commands\n"
         "        return\n"
         "    fi\n"
         "    local command=$words[2]\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    case $command in");
    for (size_t i = 0; (command = kith_cli_command(i)) != NULL; i++) {
        printf("    %s) _arguments", command->name);
        for (int at = 0; next_option(command, &at, &option);) {
            const bool is_key = strcmp(option.name, "--set") == 0 ||
                                strcmp(option.name, "--sweep") == 0;
            printf(" \\\n        '%s%s[", is_key ? "*" : "", option.name);
            print_quoted(ZSH, option.help);
            putchar(']');
            if (option.argument != NULL) {
                putchar(':');
                print_quoted(ZSH, option.argument);
                fputs(is_key ? ":{compadd -S \"\" -a keys}" : ":_files",
                      stdout);
            }
            putchar('\'');
        }
        puts(" \\\n        '*:file:_files' ;;");
    }
    puts("    esac\n}\n_kith \"$@\"");
}

static void print_fish(void)
{
    const struct cli_command *command;
    struct cli_option_text option;
    puts("# Completion of kith for fish, written by `kith completion fish`.");
    for (size_t i = 0; (command = kith_cli_command(i)) != NULL; i++) {
        printf("complete -c kith -f -n __fish_use_subcommand -a %s -d '",
               command->name);
        print_quoted(FISH, command->summary);
        puts("'");
        for (int at = 0; next_option(command, &at, &option);) {
            printf("complete -c kith -n '__fish_seen_subcommand_from %s' -l %s",
                   command->name, option.name + 2);
            if (strcmp(option.name, "--set") == 0 ||
                strcmp(option.name, "--sweep") == 0) {
                fputs(" -x -a '", stdout);
                print_keys(" ");
                putchar('\'');
            } else if (option.argument != NULL) {
                fputs(" -r", stdout);
            }
            fputs(" -d '", stdout);
            print_quoted(FISH, option.help);
            puts("'");
        }
    }
}

int kith_cli_completion(const struct cli_arguments *arguments)
{
    static void (*const print[])(void) = {print_bash, print_zsh, print_fish};
    for (int i = 0; i < SHELLS; i++)
        if (strcmp(arguments->words[0], shells[i]) == 0) {
            print[i]();
            return kith_cli_flush(arguments, KITH_EXIT_OK);
        }
    return kith_cli_unknown(arguments, "shell", arguments->words[0], shells);
}
