"""Mutants of C sources: one small change each, in a line of code.

Read as text, since the house's format is fixed: a binary operator has a space on
both sides, a statement of one line ends there. Assertions are left alone (they
are what finds mutants), and so are comments, strings and directives.
"""
import hashlib
import re

SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
         "&&": "||", "||": "&&", "+": "-", "-": "+", "*": "/", "/": "*",
         "+=": "-=", "-=": "+=", "&": "|", "|": "&", "<<": ">>", ">>": "<<"}
COMPARISONS = {"<", "<=", ">", ">=", "==", "!=", "&&", "||"}
BINARY = re.compile(r"(?<=[\w\])'\"]) (<=|>=|==|!=|&&|\|\||\+=|-=|<<|>>|[-+*/<>&|])"
                    r"(?= [\w(!&*~-])")
# At the end of a line of clang-format the operator stands last.
TRAILING = re.compile(r"(?<=[\w\])]) (<=|>=|==|!=|&&|\|\||[-+<>])$")
STEP = re.compile(r"(\+\+|--)(?=[;,)\]])|(\+\+|--)(?=\w)")
NUMBER = re.compile(r"(?<![\w.])(\d+\.\d+|\d+)(?=[uU]?[^\w.x])")
CONDITION = re.compile(r"\b(if|while) \((.*)\)( \{)?$")
STATEMENT = re.compile(r"^\s+(?!return\b|break\b|continue\b|goto\b|case\b|else\b|"
                       r"if\b|for\b|while\b|do\b|switch\b|const\b|static\b|"
                       r"struct\b|enum\b|char\b|int\b|bool\b|double\b|float\b|"
                       r"size_t\b|u?int\d+_t\b|kith_\w+ \w+( =|;))"
                       r"[(*a-zA-Z_].*(=[^=]|\(|\+\+|--).*;$")
ASSERTION = re.compile(r"\b(KITH_(DEBUG_)?ASSERT|_Static_assert)\b")
MINUS = re.compile(r"(?<=[(,=?:] )-(?=[\w(])|(?<=\()-(?=[\w(])|(?<=return )-(?=\w)")


def blank(text):
    """Comments, strings and characters as spaces, lines kept."""
    def spaces(match):
        return re.sub(r"[^\n]", " ", match.group())
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])+\'',
                  spaces, text, flags=re.S)


def asserted(lines):
    """Lines of an assertion, to its last."""
    inside, open_brackets = set(), 0
    for i, line in enumerate(lines):
        if open_brackets == 0 and not ASSERTION.search(line):
            continue
        inside.add(i)
        open_brackets += line.count("(") - line.count(")")
        open_brackets = max(open_brackets, 0)
    return inside


def changes(line, code, before):
    """(operator, column from, to, what stands there then); code is the line
    without strings, before the last line of code above it."""
    for pattern in (BINARY, TRAILING):
        for match in pattern.finditer(code):
            sign = match.group(1)
            name = "comparison" if sign in COMPARISONS else "sign"
            yield name, match.start(1), match.end(1), SWAPS[sign]
    for match in STEP.finditer(code):
        yield "sign", match.start(), match.end(), \
            "--" if match.group() == "++" else "++"
    for match in MINUS.finditer(code):
        yield "sign", match.start(), match.end(), ""
    for match in NUMBER.finditer(code):
        text = match.group()
        other = "1" if text == "0" else "0" if text == "1" else \
            str(float(text) * 2) if "." in text else str(int(text) + 1)
        yield "constant", match.start(), match.end(), other
    match = CONDITION.search(code)
    if match and match.group(2).count("(") == match.group(2).count(")"):
        yield "negated", match.start(2), match.end(2), \
            "!(" + line[match.start(2):match.end(2)] + ")"
    if STATEMENT.match(code) and re.search(r"([;{}:)]|\belse|\bdo)$", before):
        begin = len(line) - len(line.lstrip())
        yield "removed", begin, len(line), ";"


def find(path, text):
    """All mutants of a file: dicts with id, file, line, name, was, now."""
    lines, code = text.split("\n"), blank(text).split("\n")
    skip, before, found = asserted(code), "", []
    for i, line in enumerate(lines):
        stripped = code[i].rstrip()
        usable = (line[:1].isspace() and stripped and i not in skip and
                  not stripped.lstrip().startswith("#") and
                  not line.endswith("\\"))
        for name, start, end, now in changes(line, stripped, before) \
                if usable else ():
            mutated = line[:start] + now + line[end:]
            found.append({"file": path, "line": i + 1, "name": name,
                          "was": line.strip(), "now": mutated.strip(),
                          "text": mutated})
        if stripped:
            before = stripped
    return found


def rank(mutant, commit):
    """Where it comes in the commit's order."""
    key = f"{commit} {mutant['file']}:{mutant['line']} {mutant['now']}"
    return hashlib.sha256(key.encode()).hexdigest()
