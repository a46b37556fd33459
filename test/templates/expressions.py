"""Random expressions over the filters, tests and methods that jinja2's documentation lists, and their outputs.

`python expressions.py SEED COUNT` writes lines of [template, output or null]. Left out are outputs that a prompt cannot
depend on: addresses of objects, and the name of a class of Python.
"""

import datetime, json, random, sys
import transformers.utils.chat_template_utils as utilities


class Fixed(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 11, 27, 0, 34, 37)


utilities.datetime = Fixed
draw = random.Random(int(sys.argv[1]))

TEXTS = ["''", "'a'", "'aB c'", "'  x y\\t\\n'", "'Hello, World! it\\'s'", "'one-two  three'", "'äöß ÉÑ'", "'ﬁ Ǆ İ'",
 "'😀 x'", "'a\\nb\\r\\nc\\x0bd\\u2028e'", "'<b>x &amp; y</b><!-- c --> <i'", "'12'", "'-3.5'", "' 7 '", "'0x1f'",
 "'1_000'", "'1e3'", "'nan'", "'٣'", "'½'", "'a,b,,c'", "'%s-%d'", "'{0} {x}'", "'x'*3",
 "'The quick brown fox jumps over the lazy dog, again-and-again'", "'http://a.b/c?d=e f&g=ü'", "'\\ufeffa'",
 "'\\x1fa\\x1c'", "'A\\tb\\tc'", "'aaa bbb'"]
NUMBERS = ['0', '1', '-1', '2', '7', '10', '255', '-7', '3.5', '-0.5', '0.1', '1e3', '1e16', '1e-7', '2.675',
 '1234567890123456789012', '1.0', '2.5', '-2.5', '1000000', '1024']
OTHERS = ['true', 'false', 'none', 'undefinedthing', '[]', '[1,2,3]', '[3,1,2]', "['b','a','C']", "[1,'a',none]",
 '[[1,2],[3,4]]', '(1,2)', "('a',)", '{}', "{'a':1,'b':2}", "{'b':[1],'a':{'c':none}}", "{3:2,'x':true}",
 "[{'n':'x','v':2},{'n':'y','v':1},{'n':'x','v':3}]", "[0,'',none,false,1]", 'range(5)', '[1.5,2]', "['a','A','b']",
 '[true,1,1.0]', "'abc'|list", "[{'a':{'b':1}},{'a':{'b':0}}]", 'dict(a=1)']
# Arguments by name; an empty list takes none.
FILTERS = {'abs': [],
 'attr': ["'a'"],
 'batch': ['2', "3, 'x'", '1', '0', '2,none'],
 'capitalize': [],
 'center': ['10', '3', '-1'],
 'count': [],
 'd': ["'z'", "'z',true", "default_value='q'", "'', boolean=true"],
 'default': ["'z'", "'z',true"],
 'dictsort': ['', 'true', "false,'value'", "by='value', reverse=true"],
 'e': [],
 'escape': [],
 'filesizeformat': ['', 'true', 'binary=true'],
 'first': [],
 'float': ['', '1.5', 'default=2'],
 'forceescape': [],
 'format': ['1,2', "'a'", 'x=1', '*[1,2]'],
 'groupby': ["'n'", "'v'", '0', "'zz', default=1", "'a.b'"],
 'indent': ['', '2', '4,true', "'> '", '2, blank=true', 'width=3, first=true'],
 'int': ['', '5', '0,16', 'base=2', 'default=7'],
 'items': [],
 'join': ['', "', '", "', ', 'n'", "attribute='n'", "d='-'"],
 'last': [],
 'length': [],
 'list': [],
 'lower': [],
 'map': ["'upper'", "'string'", "attribute='n'", "attribute='q', default='w'", "'int'", "'default','x'",
         "'join',','", "'replace','a','b'", "'first'", "'length'", "'tojson'", "'trim'"],
 'max': ['', 'true', "attribute='v'", 'case_sensitive=true'],
 'min': ['', 'true', "attribute='v'"],
 'reject': ["'odd'", "'none'", '', "'in',[1]", "'equalto',1", "'string'", "'defined'"],
 'rejectattr': ["'n'", "'n','equalto','x'", "'v','gt',1", "'zz','defined'"],
 'replace': ["'a','b'", "'a','b',1", "'','-'", "'x',1", "' ','_',count=1", "old='a',new='c'"],
 'reverse': [],
 'round': ['', '1', "0,'floor'", "0,'ceil'", "2,'common'", '-1', "method='ceil'", 'precision=2'],
 'safe': [],
 'select': ['', "'odd'", "'string'", "'divisibleby',2", "'gt',1", "'mapping'"],
 'selectattr': ["'n'", "'n','eq','x'", "'v','ne',1", "'a.b'"],
 'slice': ['2', "3,'x'", '1'],
 'sort': ['', 'true', "attribute='v'", "attribute='n,v'", 'reverse=true', 'case_sensitive=true', 'false,true'],
 'string': [],
 'striptags': [],
 'sum': ['', "attribute='v'", 'start=5', "'v',1"],
 'title': [],
 'tojson': ['', 'indent=2', 'indent=4', 'sort_keys=true', 'ensure_ascii=true', "separators=(',',':')", 'indent=0',
            '2'],
 'trim': ['', "'a'", "'x '", "chars='b'"],
 'truncate': ['5', '10,true', "10,true,'..'", '255', "5,false,'…',0", 'length=8,leeway=0'],
 'unique': ['', 'true', "attribute='n'"],
 'upper': [],
 'urlencode': [],
 'wordcount': [],
 'wordwrap': ['10', '5,false', "10,true,'|'", "20,wrapstring='\\n>'", '10,break_on_hyphens=false', '79', '1',
              'width=7,break_long_words=false']}
TESTS = {'boolean': [],
 'callable': [],
 'defined': [],
 'divisibleby': ['2', '3', '0', '1.5'],
 'eq': ['1', "'a'", 'true'],
 'equalto': ['1'],
 'escaped': [],
 'even': [],
 'false': [],
 'float': [],
 'ge': ['1'],
 'greaterthan': ['1'],
 'gt': ['0', "'a'"],
 'in': ["[1,'a']", "'aB c'", "{'a':1}", '(1,2)', 'none'],
 'integer': [],
 'iterable': [],
 'le': ['2'],
 'lessthan': ['2'],
 'lower': [],
 'lt': ['2'],
 'mapping': [],
 'ne': ['1'],
 'none': [],
 'number': [],
 'odd': [],
 'sameas': ['none', 'true', '1'],
 'sequence': [],
 'string': [],
 'true': [],
 'undefined': [],
 'upper': [],
 'filter': [],
 'test': []}
METHODS = {'capitalize': [''],
 'casefold': [''],
 'center': ['10', "5,'*'", "3,'ab'"],
 'count': ["'a'", "''", "'a',1", "'a',0,2"],
 'endswith': ["'a'", "'c'", "('a','c')", "'b',0,2"],
 'expandtabs': ['', '4', 'tabsize=2', '0'],
 'find': ["'a'", "'zz'", "'',1", "'c',-2", "'a',1,none"],
 'format': ['1', "'a',x=2", 'x=3', '1,2,3'],
 'format_map': ["{'x':1,'0':2}"],
 'index': ["'a'", "'zz'"],
 'isalnum': [''],
 'isalpha': [''],
 'isascii': [''],
 'isdecimal': [''],
 'isdigit': [''],
 'isidentifier': [''],
 'islower': [''],
 'isnumeric': [''],
 'isprintable': [''],
 'isspace': [''],
 'istitle': [''],
 'isupper': [''],
 'join': ["['a','b']", "'xyz'", '[1]', "('q',)", "{'a':1}"],
 'ljust': ['10', "5,'.'"],
 'lower': [''],
 'lstrip': ['', "'a'", "' \\n'", 'none'],
 'partition': ["' '", "','", "''"],
 'removeprefix': ["'a'", "'Hello'"],
 'removesuffix': ["'c'", "''"],
 'replace': ["'a','b'", "'a','b',1", "'','-'", "'a','b',-1"],
 'rfind': ["'a'", "' '"],
 'rindex': ["'a'"],
 'rjust': ['10', "4,'0'"],
 'rpartition': ["' '"],
 'rsplit': ['', "' '", 'none,1', "',',1", 'maxsplit=1'],
 'rstrip': ['', "'c'", "'\\n'"],
 'split': ['', "' '", 'none,1', "',',1", "','", "''", "' ',0", "sep='-'", 'maxsplit=1', "'\\n'"],
 'splitlines': ['', 'true', 'keepends=true'],
 'startswith': ["'a'", "('h','H')", "'B',1"],
 'strip': ['', "'a'", "'x \\n'", 'none'],
 'swapcase': [''],
 'title': [''],
 'upper': [''],
 'zfill': ['5', '0', '10']}
OF_DICTS = {'get': ["'a'", "'zz'", "'zz',5", '1'],
 'items': [''],
 'keys': [''],
 'values': [''],
 'copy': [''],
 'pop': ["'a'"],
 'update': ['{}'],
 'setdefault': ["'a'"]}
OF_LISTS = {'index': ['1', "'a'"], 'count': ['1', "'a'"], 'append': ['1'], 'copy': [''], 'pop': [''], 'sort': ['']}
STATEMENTS = ['{% for x in VALUE %}{{ loop.index }}{{ loop.last }}{{ x }}{% else %}E{% endfor %}', '{% set y = VALUE %}{{ y }}',
 '{% for a, b in (VALUE) %}{{ a }}{{ b }}{% endfor %}', '{% if VALUE %}T{% else %}F{% endif %}',
 '{% for x in (VALUE)|sort %}{{ x }},{% endfor %}', "{{ 'VALUE|%r' % (VALUE) }}", '{{ [VALUE]|string }}',
 "{{ {'k': VALUE} }}",
 '{% for x in VALUE recursive %}{{ loop.depth }}{{ loop.previtem }}{{ loop.nextitem }}{% endfor %}']
OPERATORS = "+ - * / // % ** ~ == != < > <= >= in and or".split() + ["not in"]
SUBSCRIPTS = ["0", "-1", "1:", "::-1", ":2", "1:3", "::2", "5", "'a'", "-2:", "true", "1.0"]
ODD_ARGUMENTS = ["0", "1", "2", "3", "5", "-1", "10", "none", "'x'", "1.5"]


def value():
    return draw.choice(draw.choices([TEXTS, NUMBERS, OTHERS], [4, 2, 4])[0])


def filtered(subject):
    name = draw.choice(list(FILTERS))
    options = draw.choice([ODD_ARGUMENTS, [value()]]) if draw.random() < 0.12 else FILTERS[name] or [""]
    given = draw.choice(options)
    return f"({subject})|{name}({given})" if given else f"({subject})|{name}"


def called(subject, methods):
    name = draw.choice(list(methods))
    return f"({subject}).{name}({draw.choice(methods[name])})"


def tested():
    name = draw.choice(list(TESTS))
    given = f"({draw.choice(TESTS[name])})" if TESTS[name] else ""
    return f"({value()}) is {draw.choice(['', 'not '])}{name}{given}"


MANTISSAS = ["0", "1", "-7", "255", "1234567", "12345678901234567890", "-3 ** 40", "0.0", "-0.0", "0.5", "2.5", "-2.675",
 "1e16", "1e-7", "123456.789", "1e22", "true"]
LETTERS = "aAbBcCdDeFgGhHIjkmMnpPrRsStTuUVwWxXyYzZ%QLf"


def some(characters, share=0.25):
    return draw.choice(characters) if draw.random() < share else ""


def number():
    return draw.choice(MANTISSAS)


def formatted():
    """A number in one of Python's two languages of formats."""
    width, precision = some(["3", "6", "9", "15"], 0.6), some([".0", ".1", ".3", ".12"], 0.4)
    if draw.random() < 0.4:
        return f"'[%{some('-+ #0')}{some('-+ #0')}{width}{precision}{draw.choice('diuxXoeEfFgGsrac')}]' % ({number()})"
    align = some("<>=^") and draw.choice(["", "*", "0", " "]) + draw.choice("<>=^")
    spec = f"{align}{some('+- ')}{some('#')}{some('0')}{width}{some(',_')}{precision}{some('bcdeEfFgGnoxXs%', 0.7)}"
    return f"'[{{:{spec}}}]'.format({number()})"


def counted():
    """Arithmetic, rounding and reading of numbers small and large."""
    return draw.choice([
        f"({number()}) {draw.choice(['+', '-', '*', '/', '//', '%', '==', '<'])} ({number()})",
        f"({number()})|round({draw.choice(['-400', '-20', '-2', '-1', '0', '1', '2', '5', '20', '400'])}"
        f"{some([',' + repr(each) for each in ('common', 'ceil', 'floor')], 0.7)})",
        f"({number()}) ** ({draw.choice(['0', '1', '2', '-1', '-2', '5', '-5'])})",
        f"'{some(['0x', '0b', '0o', '-'])}{some('017fz_', 0.8)}{some('01_9', 0.8)}1'|int(-1, {draw.choice([0, 2, 8, 10, 16, 36])})",
    ])


def dated():
    code = f"%{some('-_0^#')}{some('-_0^#', 0.1)}{some(['3', '12'])}{some('EO', 0.1)}{draw.choice(LETTERS)}"
    return f"strftime_now('[{code}] %d')"


def macro():
    """A macro with defaults, and a call of it; the values of its parameters, and what is left over, are its output."""
    names = draw.sample(["a", "b", "c"], draw.choice([1, 2, 3]))
    first = draw.randrange(len(names) + 1)
    defaults = ["1", "none", "[]"] + [f"{each}" for each in ("a", "b", "c", "y", "varargs", "kwargs")]
    parameters = [name + ("" if i < first else f"={draw.choice(defaults)}") for i, name in enumerate(names)]
    body = "".join(f"{{{{ {each} }}}}," for each in [*names, *some([["varargs"], ["kwargs"], ["varargs", "kwargs"]], 0.4)])
    given = [draw.choice(["5", "'x'", "a=6", "b=7", "c=8", "z=9", "undefinedthing"]) for _ in range(draw.choice([0, 1, 2, 3]))]
    given.sort(key=lambda each: "=" in each)
    return f"{{% set y = 'Y' %}}{{% macro m({', '.join(parameters)}) %}}{body}{{% endmacro %}}{{{{ m({', '.join(given)}) }}}}"


def spaced():
    """Tags and comments with signs, in white space."""
    space = lambda: draw.choice(["", " ", "\n", "\n  ", "  ", "\n\n", "a", " b\n"])
    sign = lambda: some("-+", 0.6)
    tag = lambda: draw.choice([
        f"{{#{sign()}{some([' c ', '-', '+', ' '], 0.6)}{sign()}#}}",
        f"{{%{sign()} set x = 1 {sign()}%}}",
        f"{{{{{some('-')} 1 {some('-')}}}}}",
        f"{{%{sign()} raw {some('-')}%}}{space()}{{{{{space()}{{%{sign()} endraw {sign()}%}}",
    ])
    return "".join(space() + tag() + space() for _ in range(draw.choice([1, 2, 3])))


def scoped(depth=2):
    """Names of the context that blocks in each other read and set."""
    name = draw.choice(["messages", "tools", "x"])
    if depth == 0 or draw.random() < 0.4:
        return draw.choice(["{{ %s }}," % name, "{%% set %s = %d %%}" % (name, draw.randrange(9))])
    inner = "".join(scoped(depth - 1) for _ in range(draw.choice([1, 2, 3])))
    open_tag, close_tag = draw.choice([
        ("for x in [1, 2]", "endfor"), ("if true", "endif"), ("if false", "endif"), ("with", "endwith"),
        ("filter upper", "endfilter"), (f"set {name}", "endset"), ("macro m()", "endmacro"), ("generation", "endgeneration"),
    ])
    return f"{{% {open_tag} %}}{inner}{{% {close_tag} %}}" + ("{{ m() }}" if "macro" in open_tag else "")


FORMS = [
    (12, lambda: filtered(value())),
    (4, lambda: filtered(filtered(value()))),
    (6, lambda: called(draw.choice(TEXTS), METHODS)),
    (2, lambda: filtered(called(draw.choice(TEXTS), METHODS))),
    (2, lambda: called(draw.choice(OTHERS), draw.choice([OF_DICTS, OF_LISTS]))),
    (3, tested),
    (4, lambda: f"({value()}) {draw.choice(OPERATORS)} ({value()})"),
    (2, lambda: f"({value()})[{draw.choice(SUBSCRIPTS)}]"),
    (4, formatted),
    (4, counted),
    (2, dated),
]


def template():
    if draw.random() < 0.04:
        return draw.choice(STATEMENTS).replace("VALUE", value())
    if draw.random() < 0.08:
        return draw.choice([macro, spaced, lambda: scoped() + scoped() + scoped()])()
    [form] = draw.choices([form for _, form in FORMS], [weight for weight, _ in FORMS])
    expression = form()
    written = draw.choices(["{{ %s }}", "{{ (%s)|tojson }}", "[{{ [%s]|string }}]"], [14, 3, 3])[0]
    return written.replace("%s", expression)


seen = set()
while len(seen) < int(sys.argv[2]):
    source = template()
    if source in seen or ("**" in source and "1234567" in source):
        continue
    seen.add(source)
    try:
        output = utilities._compile_jinja_template(source).render(messages=[], tools=None, documents=None)
    except Exception:
        output = None
    if output is None or not any(name in output.lower() for name in (" object at 0x", "method", "<generator", "markup(")):
        print(json.dumps([source, output]))
