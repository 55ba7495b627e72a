"""Which shell lines can do no harm: read as the shell would, as far as that is certain, and held against one table.

A command that is only said to be read-only is not: `find -exec`, `sed '1e id'`, `rg --pre`, `git diff --output`,
`sort -o`, `uniq in out`. So a program of the table runs with the flags named there and with paths that tools may read.
A program that is not in it runs only word for word as it is listed.
"""

from __future__ import annotations

import fnmatch
import glob
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from leporello.lazy_regex import lazy_regex
from leporello.tools.confine import bash

# -- the simple commands of a line, word by word

_HARMLESS_REDIRECT = lazy_regex(r"(?:(?:[012]?>>?|&>)[ \t]*/dev/null|[12]?>&[12]|<[ \t]*/dev/null)(?=[\s;|&]|$)")
_TOKEN = lazy_regex(
    r"""(?P<separator>&&|\|\|?|;|\n)|(?P<blank>[ \t])"""
    r"""|'(?P<single>[^']*)'|"(?P<double>(?:[^"\\$`]|\\.)*)"|\\(?P<escaped>.)|(?P<plain>[^$`(){}<>&!'"\\])""",
    re.DOTALL,
)
_ESCAPE_IN_QUOTES = lazy_regex(r"""\\([$`"\\])|\\\n""")
_NOT_A_COMMAND = set("*?[]~=")
_KEYWORD = lazy_regex(
    r"if|then|else|elif|fi|case|esac|for|select|while|until|do|done|in|function|time|coproc|\[\[|\]\]"
)
_LIVE = set("*?[")


class Word(str):
    """One word as a program would get it. `pattern` is what the shell puts file names for; empty when it does not."""

    __slots__ = ("pattern",)
    pattern: str

    def __new__(cls, text: str, pattern: str = "") -> Word:
        word = super().__new__(cls, text)
        word.pattern = pattern
        return word


def simple_commands(line: str) -> list[list[Word]] | None:
    """The words of each simple command, as the shell would see them; None when that is not certain."""
    tokens = _tokens(line)
    if tokens is None:
        return None
    commands: list[list[Word]] = []
    words: list[Word] = []
    pieces: list[tuple[str, str]] = []
    for kind, text in (*tokens, ("separator", "")):
        if kind not in ("blank", "separator"):
            pieces.append((kind, text))
            continue
        if pieces:
            word = _word(pieces)
            if not words and not _can_be_command(pieces, word):
                return None
            words.append(word)
            pieces = []
        if kind == "separator" and words:
            commands.append(words)
            words = []
    return commands or None


def _word(pieces: list[tuple[str, str]]) -> Word:
    text = "".join(piece for _, piece in pieces)
    if text.startswith("~") and next(kind for kind, piece in pieces if piece) != "plain":
        # Not the home folder but a file of that name; whoever reads the word can't see the quotes.
        pieces, text = [("plain", "./"), *pieces], "./" + text
    if not any(kind == "plain" and piece in _LIVE for kind, piece in pieces):
        return Word(text)
    return Word(text, "".join(piece if kind == "plain" else glob.escape(piece) for kind, piece in pieces))


def _can_be_command(pieces: list[tuple[str, str]], word: str) -> bool:
    odd = any(kind == "plain" and piece in _NOT_A_COMMAND for kind, piece in pieces)
    return bool(word) and not odd and not _KEYWORD.fullmatch(word)


def _tokens(line: str) -> list[tuple[str, str]] | None:
    """Kind and text of each piece of a line; None when one does more than name a command or an argument."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(line):
        in_word = bool(found) and found[-1][0] not in ("blank", "separator")
        redirect = _HARMLESS_REDIRECT.match(line, at) if not in_word or line[at] in "<>&" else None
        if redirect and ((line[at] == "&" and not bash()) or (in_word and _is_number(found))):
            # Other shells start what stands before `&>` in the background; of `10>` the number is no word.
            return None
        token = redirect or _TOKEN.match(line, at)
        if token is None:
            return None
        at = token.end()
        kind = token.lastgroup or "blank"
        text = token[kind] if token.lastgroup else ""
        if kind == "plain" and (not text.isprintable() or (text == "#" and not in_word)):
            # A comment begins only at the start of a word; odd blanks and control characters are never needed.
            return None
        if text == "~" and found and found[-1] in (("plain", "="), ("plain", ":")):
            # Some shells put the home folder there, too.
            return None
        if kind == "double":
            text = _ESCAPE_IN_QUOTES.sub(r"\1", text)
        if not (kind == "escaped" and text == "\n"):
            found.append((kind, text))
    return found


def _is_number(found: list[tuple[str, str]]) -> bool:
    """Whether the word at the end is one."""
    word = itertools.takewhile(lambda piece: piece[0] not in ("blank", "separator"), reversed(found))
    return all(kind == "plain" and text.isdigit() for kind, text in word)


# -- the flags and operands that each program may have and still run unasked

MOST_NAMES = 2_000  # file names one pattern may stand for; more are not looked through
_NAME = lazy_regex(r"[A-Za-z0-9_][\w.:-]{0,80}")
_SED = lazy_regex(r"(?:(?:\d+|\$|/[^/\\\n;]*/)(?:,(?:\d+|\$|\+\d+|/[^/\\\n;]*/))?)?[p=]")
_DATE = lazy_regex(r"\+.*", re.DOTALL)
_COUNT = lazy_regex(r"-\d{1,9}")
_ODD_HOME = lazy_regex(r"~[^/]")  # `~-` and the like, which mean a folder that only the shell knows
_SIGNATURE = lazy_regex(r"%[-+ ]?G|%\([^)]{0,400}signature")
"""In a format of git's: it starts the program that checks signatures."""
_BRACKET = lazy_regex(r"\[.*", re.DOTALL)
_SIZE = lazy_regex(r"[\w.%]{0,9}")
_FORMS = {"none": lazy_regex(r"(?!)"), "text": lazy_regex(r".*", re.DOTALL), "names": _NAME, "date": _DATE}


class Rule(Struct, frozen=True):
    """What a program may be given. Kinds of a flag: "" none, ":" text, "@" a path, "=" perhaps text, joined by `=`."""

    operands: str
    """`paths`, `text`, `names` (of targets), `none`; or the form of the first one: `pattern`, `sed`, `date`."""
    flags: Mapping[str, str]
    most: int = 1_000
    """Operands; `uniq` writes into its second one."""
    whole: bool = False
    """Whether `-name` is one flag, as with `find` and `go`, and not five."""
    counts: bool = False
    """Whether `-20` is a flag."""
    looks_into: bool = False
    """Whether it follows the links of a folder that it is given, as `diff` does."""
    no_pattern: frozenset[str] = frozenset()
    """Flags after which no operand is a pattern."""


def _rule(operands: str, flags: str, **more: Any) -> Rule:
    kinds: dict[str, str] = {}
    instead: set[str] = set()
    for word in flags.split():
        name = word.rstrip("!:@=")
        kinds[name] = word[len(name) :].strip("!")
        if "!" in word:
            instead.add(name)
    return Rule(operands, MappingProxyType(kinds), no_pattern=frozenset(instead), **more)


_DIFF = """-p --patch -u -U: --unified: --stat= --shortstat --numstat --dirstat= --summary --name-only --name-status
    --cached --staged -w -b -a --text --word-diff= --color= --no-color --color-words= --minimal --patience --histogram
    -M= --find-renames= --find-copies= --no-renames -R --relative= --diff-filter: -S: -G: --pickaxe-regex -q --quiet
    --exit-code --check -z --raw --full-index --abbrev= -W --function-context --no-ext-diff --no-textconv -s
    --ignore-all-space --ignore-space-change --ignore-blank-lines --no-prefix --merge-base --no-patch --"""
_LOG = (
    _DIFF
    + """ --oneline -n: --max-count: --skip: --graph --all --branches= --tags= --remotes= --author: --committer:
    --since: --until: --after: --before: --grep: -i -E -F -P --invert-grep --format: --pretty= --decorate=
    --no-decorate --first-parent --merges --no-merges --follow --reverse --date: -L: --topo-order --date-order
    --abbrev-commit --no-abbrev-commit --left-right --cherry-pick --cherry --boundary --walk-reflogs -g"""
)
_GREP = """-i -v -n -w -x -c -l -L -o -q -s -h -H -r -a -I -b -E -F -P -G -y -z -T -Z -A: -B: -C: -m: -d: -e!: -f!@
    --ignore-case --invert-match --line-number --word-regexp --line-regexp --count --files-with-matches
    --files-without-match --only-matching --quiet --silent --no-messages --no-filename --with-filename --recursive
    --text --extended-regexp --fixed-strings --perl-regexp --basic-regexp --null --after-context: --before-context:
    --context= --max-count: --regexp!: --file!@ --include: --exclude: --exclude-dir: --color= --colour= --"""
_RG = """-i -s -S -v -n -N -w -x -c -l -o -q -a -u -F -P -U -p -0 -h -H -I -. -A: -B: -C: -m: -M: -g: -t: -T: -E: -j:
    -d: -e!: -f!@ -r: --ignore-case --case-sensitive --smart-case --invert-match --line-number --no-line-number
    --word-regexp --line-regexp --count --count-matches --files-with-matches --files-without-match --only-matching
    --quiet --text --unrestricted --fixed-strings --pcre2 --multiline --multiline-dotall --pretty --null --heading
    --no-heading --no-filename --with-filename --after-context: --before-context: --context: --max-count:
    --max-columns: --max-depth: --max-filesize: --glob: --iglob: --type: --type-not: --type-list! --regexp!: --file!@
    --files! --hidden --no-ignore --no-ignore-vcs --no-messages --sort: --sortr: --stats --json --trim --vimgrep
    --column --passthru --color: --colors: --replace: --no-config --"""
_FIND = """-name: -iname: -path: -ipath: -wholename: -iwholename: -regex: -iregex: -regextype: -type: -xtype:
    -maxdepth: -mindepth: -size: -mtime: -mmin: -ctime: -cmin: -atime: -amin: -newer@ -newermt: -samefile@ -perm: -user:
    -group: -uid: -gid: -links: -inum: -empty -print -print0 -printf: -ls -not -a -o -and -or -prune -quit -xdev -mount
    -depth -true -false -executable -readable -writable -nouser -nogroup -daystart -P"""
_PYTEST = """-q -v -x -s -l -k: -m: -r: -n: --quiet --verbose --exitfirst --tb: --maxfail: --lf --last-failed --ff
    --failed-first --nf --co --collect-only --durations: --no-header --no-summary --showlocals --strict-markers
    --strict-config --color: --capture: --disable-warnings --deselect: --sw --stepwise --version -h --help --"""
_CARGO = """--all --workspace --release --lib --bins --tests --examples --all-targets --all-features
    --no-default-features -p: --package: --test: --bin: --example: --features: -F: -q -v --quiet --verbose --no-run
    --no-fail-fast --locked --offline --frozen --doc -j: --jobs: --message-format: --color:"""
_REFLOG = "-n: --date: --oneline --all"
_SUMS = "-b -t -z --tag --binary --text"

TABLE: dict[str, Rule] = {
    "ls": _rule(
        "paths",
        """-1 -A -B -C -F -G -N -Q -R -S -U -X -Z -a -b -c -d -f -g -h -i -k -l -m -n -o -p -q -r -s -t -u -v -x
        --all --almost-all --author --color= --directory --file-type --full-time --group-directories-first
        --human-readable --ignore: --inode --no-group --numeric-uid-gid --recursive --reverse --si --size --sort:
        --time: --time-style: --""",
    ),
    "tree": _rule(
        "paths", "-a -d -f -i -s -h -p -u -g -D -F -q -N -C -n -L: -P: -I: -J -X --dirsfirst --noreport --du --"
    ),
    "cat": _rule("paths", "-A -b -e -E -n -s -t -T -u -v --number --show-all --squeeze-blank --number-nonblank --"),
    "head": _rule("paths", "-n: -c: -q -v -z --lines: --bytes: --quiet --verbose --", counts=True),
    "tail": _rule("paths", "-n: -c: -q -v -z -r --lines: --bytes: --quiet --verbose --", counts=True),
    "wc": _rule("paths", "-l -w -c -m -L --lines --words --bytes --chars --max-line-length --"),
    "nl": _rule("paths", "-b: -n: -s: -v: -w: --"),
    "tac": _rule("paths", "--"),
    "rev": _rule("paths", ""),
    "file": _rule("paths", "-b -i -L -h -k --brief --mime --mime-type --mime-encoding --"),
    "stat": _rule("paths", "-c: -f -t --format: --printf: --terse --file-system -x -s --"),
    "du": _rule(
        "paths",
        "-a -b -c -d: -h -k -m -s -S -x --max-depth: --summarize --human-readable --total --all --apparent-size --",
    ),
    "df": _rule("paths", "-h -H -i -k -m -T -P -l --human-readable --inodes --print-type --total --"),
    "realpath": _rule("paths", "-e -m -s -q --"),
    "readlink": _rule("paths", "-e -f -m -n -q --"),
    "basename": _rule("text", "-a -s: -z --"),
    "dirname": _rule("text", "-z --"),
    "cmp": _rule("paths", "-b -l -s -n: --", most=2),
    "diff": _rule(
        "paths",
        "-u -U: -c -C: -q -s -i -w -b -B -y -a -E -Z -p --unified= --context= --brief --side-by-side --width: --color= "
        "--ignore-all-space --ignore-case --ignore-blank-lines --strip-trailing-cr --label: --suppress-common-lines --",
        most=2,
        looks_into=True,
    ),
    "comm": _rule("paths", "-1 -2 -3 -z --", most=2),
    "cut": _rule(
        "paths",
        "-b: -c: -d: -f: -s -z --bytes: --characters: --delimiter: --fields: --complement --output-delimiter: --",
    ),
    "sort": _rule(
        "paths",
        """-b -c -C -d -f -g -h -i -k: -m -M -n -r -R -s -t: -u -V -z --reverse --unique --numeric-sort --key:
        --field-separator: --human-numeric-sort --version-sort --ignore-case --stable --check= --""",
    ),
    "uniq": _rule("paths", "-c -d -D -f: -i -s: -u -w: -z --count --repeated --unique --ignore-case --", most=1),
    "tr": _rule("text", "-c -C -d -s -t --complement --delete --squeeze-repeats --"),
    "column": _rule("paths", "-t -s: -x -n -c: -N: -o: --table --separator: --"),
    "md5sum": _rule("paths", _SUMS),
    "sha1sum": _rule("paths", _SUMS),
    "sha256sum": _rule("paths", _SUMS),
    "echo": _rule("text", "-n -e -E"),
    "printf": _rule("text", ""),
    "pwd": _rule("none", "-L -P"),
    "true": _rule("none", ""),
    "false": _rule("none", ""),
    "date": _rule("date", "-u -R -I --utc --iso-8601= --rfc-3339: -d: --date:", most=1),
    "uname": _rule("none", "-a -s -n -r -v -m -p -i -o --all"),
    "whoami": _rule("none", ""),
    "id": _rule("names", "-u -g -G -n -r -z"),
    "nproc": _rule("none", "--all"),
    "which": _rule("names", "-a"),
    "type": _rule("names", "-a -t -p -P -f"),
    "grep": _rule("pattern", _GREP, counts=True),
    "egrep": _rule("pattern", _GREP, counts=True),
    "fgrep": _rule("pattern", _GREP, counts=True),
    "rg": _rule("pattern", _RG),
    "find": _rule("paths", _FIND, whole=True),
    "sed": _rule("sed", "-n -E -r -s -u -z --quiet --silent --regexp-extended --posix --"),
    "git status": _rule(
        "paths",
        "-s -b -u -v -z --short --branch --long --porcelain= --ignored= --show-stash --untracked-files= --",
    ),
    "git diff": _rule("paths", _DIFF),
    "git log": _rule("paths", _LOG, counts=True),
    "git show": _rule("paths", _LOG, counts=True),
    "git blame": _rule("paths", "-L: -w -e -s -t -l -p -C -M --date: --show-email --porcelain --since: --"),
    "git branch": _rule(
        "none", "-a -r -v -l --list --all --remotes --verbose --show-current --contains: --merged= --sort: --format:"
    ),
    "git tag": _rule("none", "-l -n --list --sort: --contains: --format:"),
    "git remote": _rule("none", "-v --verbose"),
    "git stash list": _rule("none", "--oneline --stat= --format: --date:"),
    "git rev-parse": _rule(
        "text",
        "--abbrev-ref= --short= --verify -q --quiet --show-toplevel --show-prefix --is-inside-work-tree --git-dir",
    ),
    "git rev-list": _rule(
        "text", "--count --all -n: --max-count: --since: --until: --author: --no-merges --first-parent", counts=True
    ),
    "git ls-files": _rule(
        "paths", "-c -d -m -o -i -s -u -t -v -z --cached --deleted --modified --others --exclude-standard --stage --"
    ),
    "git ls-tree": _rule("paths", "-r -t -d -l -z --name-only --name-status --long --full-tree --abbrev= --"),
    "git cat-file": _rule("text", "-p -t -s -e", most=2),
    "git describe": _rule("text", "--tags --all --always --long --dirty= --abbrev= --match: --contains --exact-match"),
    "git shortlog": _rule("text", "-s -n -e -c --summary --numbered --email --since: --until: --no-merges"),
    "git reflog": _rule("none", _REFLOG, counts=True),
    "git reflog show": _rule("text", _REFLOG, counts=True),
    "git merge-base": _rule("text", "-a --all --is-ancestor"),
    "git grep": _rule("pattern", _GREP.replace("-f!@", "").replace("--file!@", "") + " --cached -p -W", counts=True),
    # These run the project's own code; whoever lists them means that. No flag of theirs brings in other code.
    "pytest": _rule("paths", _PYTEST),
    "python -m pytest": _rule("paths", _PYTEST),
    "python3 -m pytest": _rule("paths", _PYTEST),
    "make": _rule("names", "-s -k -n -B -i -j= --silent --quiet --keep-going --dry-run --always-make"),
    "npm test": _rule("none", "-s --silent"),
    "npm run": _rule("names", "-s --silent --if-present", most=1),
    "cargo test": _rule("names", _CARGO),
    "cargo build": _rule("none", _CARGO),
    "cargo check": _rule("none", _CARGO),
    "cargo clippy": _rule("none", _CARGO),
    "go test": _rule(
        "paths",
        "-v -run: -count: -race -short -timeout: -cover -failfast -bench: -benchmem -parallel: -json -skip:",
        whole=True,
    ),
    "go vet": _rule("paths", "", whole=True),
    "ruff check": _rule(
        "paths",
        "-q -v -n --quiet --verbose --no-cache --select: --ignore: --output-format: --statistics --diff --show-files",
    ),
    "mypy": _rule("paths", "-p: -m: --strict --no-error-summary --pretty --show-error-codes --no-incremental"),
}

OWN_CODE = frozenset("pytest python python3 make npm cargo go ruff mypy".split())
"""Programs that may well lie in the project: they run its code anyway."""
_NO_PAGER = "--no-pager"
_ASKED = frozenset(name.split()[0] for name in TABLE) | frozenset(
    """xargs env sudo doas su nice ionice nohup timeout watch time strace ltrace setsid stdbuf parallel ssh sh bash dash
    zsh fish ksh busybox eval exec command builtin source . awk gawk mawk nawk perl ruby node deno bun php lua osascript
    expect entr script vi vim nvim ed ex emacs less more man tar zip unzip rsync scp curl wget docker podman kubectl npx
    uvx pipx flock chroot unshare nsenter bwrap systemd-run at crontab tee dd cp mv ln rm install""".split()
)
"""Programs that run or write what they are given. No pattern speaks for their arguments."""


def is_harmless(words: Sequence[Word], folder: Path, may_read: Callable[[Path], bool]) -> bool | None:
    """Whether these words can do no harm run in `folder`; None for a program that nothing is known about."""
    if len(words) > 1 and words[0] == "git" and words[1] == _NO_PAGER:
        words = [words[0], *words[2:]]
    named = next((size for size in (3, 2, 1) if len(words) >= size and " ".join(words[:size]) in TABLE), 0)
    if not named:
        return False if words[0] in _ASKED else None
    rule = TABLE[" ".join(words[:named])]
    rest = words[named:]
    if any(word.pattern for word in words[:named]):
        return False
    if not all(_names_stay_inside(word, folder, may_read) for word in rest if word.pattern):
        return False
    if any(_ODD_HOME.match(word) or (words[0] == "git" and _SIGNATURE.search(word)) for word in rest):
        return False
    given = _read(rule, rest)
    paths = _paths(rule, given) if given is not None else None
    if paths is None or (words[0] != "git" and any(path.startswith("@") for path in paths)):
        # Of `@file` some programs read further arguments from the file.
        return False
    places = [folder / os.path.expanduser(path) for path in paths]
    if not all(map(may_read, places)):
        return False
    return not rule.looks_into or all(may_read(name) for place in places if place.is_dir() for name in place.iterdir())


class _Given(Struct):
    operands: list[str] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    values: list[str] = field(default_factory=list)
    """Values that are paths, or that another edition of the program might take for operands."""


def _read(rule: Rule, words: Sequence[Word]) -> _Given | None:
    """What the words give the program; None when a flag is not known to be harmless."""
    given = _Given()
    rest = iter(words)
    for word in rest:
        if word == "--" and "--" in rule.flags:
            given.operands += rest
        elif not word.startswith("-") or word == "-":
            given.operands.append(word)
        elif not (rule.counts and _COUNT.fullmatch(word)) and not _take_flags(rule, word, rest, given):
            return None
    return given if len(given.operands) <= rule.most else None


def _take_flags(rule: Rule, word: str, rest: Iterator[str], given: _Given) -> bool:
    """One word of flags, with the value it takes from the word after it."""
    if word.startswith("--") or rule.whole:
        name, joined, value = word.partition("=")
        kind = rule.flags.get(name)
        given.flags.add(name)
        if kind is None or (joined and not kind) or name == "--":
            return False
        return kind in ("", "=") or _take_value(kind, value if joined else None, rest, given)
    for at, letter in enumerate(word[1:], start=1):
        kind = rule.flags.get(f"-{letter}")
        given.flags.add(f"-{letter}")
        if kind is None:
            return False
        if kind == "=":
            return _SIZE.fullmatch(word[at + 1 :]) is not None
        if kind:
            return _take_value(kind, word[at + 1 :] or None, rest, given)
    return True


def _take_value(kind: str, joined: str | None, rest: Iterator[str], given: _Given) -> bool:
    value = joined if joined is not None else next(rest, None)
    if value is None or (joined is None and value.startswith("-") and not _COUNT.fullmatch(value)):
        # An edition of the program whose flag takes no value would take this for a flag.
        return False
    if kind == "@" or joined is None:
        given.values.append(value)
    return True


def _paths(rule: Rule, given: _Given) -> Sequence[str] | None:
    """Every word that is, or may be taken for, a path; None when an operand has not the form it must have."""
    form = _FORMS.get(rule.operands)
    if form is not None:
        return given.values if all(form.fullmatch(word) for word in given.operands) else None
    first_is_no_path = rule.operands == "sed" or (rule.operands == "pattern" and not given.flags & rule.no_pattern)
    if rule.operands == "sed" and not (given.operands and _SED.fullmatch(given.operands[0])):
        return None
    return [*given.values, *given.operands[first_is_no_path:]]


def _names_stay_inside(word: Word, folder: Path, may_read: Callable[[Path], bool]) -> bool:
    """Whether every file name the shell may put for a pattern can be read, and none of them would be a flag."""
    # Shells differ in what brackets stand for: as many names as anything could.
    pattern = "/".join(_BRACKET.sub("*", part) for part in os.path.expanduser(word.pattern).split("/"))
    # Older shells put `..` for `.*`.
    if any(part != ".." and part.startswith(".") and fnmatch.fnmatchcase("..", part) for part in pattern.split("/")):
        return False
    names = list(itertools.islice(glob.iglob(pattern, root_dir=folder, include_hidden=True), MOST_NAMES + 1))
    if len(names) > MOST_NAMES or (names and word.startswith("-")):
        return False
    return all(not name.startswith("-") and may_read(folder / name) for name in names)
