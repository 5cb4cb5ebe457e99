"""Small templates, each for something that chat templates use: golden_chat.py renders them with WITH."""

WITH = {
    "rows": [{"name": "b", "n": 2, "in": {"x": 1}}, {"name": "a", "n": 10, "in": {"x": 2}}, {"name": "C", "n": 1}],
    "pair": {"z": 1, "a": [1, 2.5, None, True, "it's"], "items": "shadowed"},
    "text": "  Hellö, wörld 漢字 \n", "words": "one two  three", "zero": 0, "nothing": None, "number": 7, "long": [1, 2, 3, 4, 5],
    "quote": "a \"b\" 'c' \\ \t\u0001\u007f", "deep": [[1, [2]], {"k": {"l": [3]}}], "empty": [], "flag": True, "real": 2.0,
}

WHITESPACE = [
    "a {{ 1 }} b", "a  {%- if flag -%}  b  {%- endif -%}  c", "{% if flag %}\nline\n{% endif %}\nend\n", "  {% if flag %}x{% endif %}\n  y",
    "x\n    {% set a = 1 %}\n    {{ a }}\n", "x\n    {%+ set a = 1 %}\n  y", "{# note #}\nz", "a\n  {# note #}  \nb", "a {#- note -#} b",
    "{% set a = 1 +%}\nb", "{{ 1 -}}\n\n  b", "a\n\n  {{- 1 }}", "a\n\n", "a\r\nb\rc\n", "{% raw %}{{ x }}{% endraw %}\nz",
    "a\n  {% raw -%}  {% if %}  {%- endraw %}\nb", "\n\n{% if flag %}{% endif %}\n\n", "  \t{%- set x = 1 %} y", "{{ '{{' }}{{ '%}' }}",
    "{{ {'a': {'b': 1}} }}", "}} %} #} {", "{{ 1 }}\n{{ 2 }}\n", "é\u00a0{%- set x = 1 -%}\u3000é", "{% if flag %}  \n  {% endif %}x",
    "  {#- a -#}  \n {% if true %}\n  b\n {% endif %}\n", "{%set x=1%}{%if x%}y{%endif%}", "{% for i in long %}\n  {{ i }}\n{% endfor %}\n",
]

VALUES = [
    "{{ true }} {{ True }} {{ none }} {{ None }} {{ 1.0 }} {{ 1e3 }} {{ 1e16 }} {{ 123456789.5 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1_000 }}",
    "{{ 'a' 'b' \"c\" }}", "{{ '\\n|\\t|\\\\|\\'|\\x41|\\u00e9|\\101|\\q' }}", "{{ [1, 'a', none, 2.5, [true]] }}", "{{ (1, 'b') }}{{ (1,) }}{{ () }}",
    "{{ {'a': 1, 'b': [none], 3: 'c'} }}", "{{ quote }}{{ [quote] }}", "{{ pair }}", "{{ deep }}", "{{ missing }}|{{ missing ~ 'x' }}", "{{ [missing] }}",
    "{{ missing.x }}", "{{ missing['x'] }}", "{{ missing() }}", "{{ missing + 'x' }}", "{{ nothing.x }}|", "{{ nothing.x.y }}", "{{ zero.x }}|{{ text.nope }}",
    "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}",
    "{{ 1 / 0 }}", "{{ 1 % 0 }}", "{{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ 'a' ~ 1 + 2 ~ none }}", "{{ 'ab' * 3 }} {{ [1] * 2 }} {{ [1] + [2] }} {{ 2 * 'x' }}",
    "{{ 'a' + 1 }}", "{{ 1 + none }}", "{{ true + 1 }} {{ -flag }} {{ +number }} {{ - number }}", "{{ -5|abs }} {{ -1.5|abs }}",
    "{{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' == 'a' }} {{ [1] == [1] }} {{ {'a': 1} == {'a': 1} }} {{ (1,) == [1] }} {{ none == false }}",
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 2 >= 2 }} {{ 1 != 2 }}", "{{ 1 < 'a' }}",
    "{{ 1 in long }} {{ 9 not in long }} {{ 'ell' in text }} {{ 'z' in pair }} {{ 'x' in missing }}", "{{ 1 in 2 }}", "{{ 1 in 'a1' }}",
    "{{ flag and 'yes' }} {{ zero or 'no' }} {{ not flag }} {{ not zero and flag }} {{ zero and missing.x }} {{ missing or none }}",
    "{{ 'a' if flag else 'b' }}{{ 'a' if zero }}|{{ 'x' if zero else 'y' if zero else 'z' }}",
    "{{ long[0] }} {{ long[-1] }} {{ long[9] }}| {{ long[1:3] }} {{ long[::-1] }} {{ long[:-1] }} {{ long[::2] }} {{ long[4:1:-2] }} {{ long[-99:99] }}",
    "{{ text[2] }} {{ text[2:7] }} {{ text[::-1] }} {{ text[-4] }} {{ text|length }} {{ text[99] }}|", "{{ long[::0] }}", "{{ 5[1:2] }}",
    "{{ rows[0].name }} {{ rows.0.name }} {{ rows[0]['in'].x }} {{ rows[0].in.x }} {{ rows.1['n'] }}", "{{ pair['items'] }}", "{{ pair.get('q') }} {{ pair.get('q', 3) }} {{ pair.get('z') }}",
    "{{ 9223372036854775807 }} {{ -9223372036854775807 }}", "{{ {'a': 1, 'a': 2, 'b': 3} }} {{ {1: 'x', true: 'y'} }}", "{{ 1, 2 }}", "{{ not 1 in [2] }}",
    "{{ 10000000000000000.0 }} {{ 1.5e-7 }} {{ 0.1 + 0.2 }} {{ 100.0 }} {{ 5e-324 }} {{ 1e22 }} {{ -0.0 }}",
]

STATEMENTS = [
    "{% for i in long %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for i in long if i % 2 %}{{ i }}:{{ loop.index }}/{{ loop.length }} {% endfor %}", "{% for i in empty %}x{% else %}none{% endfor %}",
    "{% for i in long %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {{ loop.previtem is defined }}{% endfor %}", "{% for k, v in pair.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in pair %}{{ k }}{% endfor %}{% for c in 'añb' %}{{ c }}.{% endfor %}", "{% for a, b in [[1, 2], (3, 4)] %}{{ a + b }} {% endfor %}",
    "{% for a, b in [[1]] %}{% endfor %}", "{% for x in missing %}a{% else %}b{% endfor %}", "{% for x in nothing %}{% endfor %}", "{% for x in 5 %}{% endfor %}",
    "{% set x = 1 %}{% for i in long %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}", "{% set ns = namespace(x=1) %}{% for i in long %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns.c }}|", "{% set pair.x = 1 %}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = long %}",
    "{% set x %}a{{ number }}b{% endset %}{{ x }}{{ x|length }}", "{% set x | upper | trim %} ab {% endset %}[{{ x }}]", "{% if zero %}a{% elif nothing %}b{% elif number == 7 %}c{% else %}d{% endif %}",
    "{% if missing %}a{% endif %}{% if missing is defined and missing.x %}{% endif %}b", "{% if flag %}{% set y = 2 %}{% endif %}{{ y }}", "{% for i in [1] %}{% if true %}{% set z = 3 %}{% endif %}{{ z }}{% endfor %}{{ z }}|",
    "{% for i in long %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}", "{% for i in long %}{% for j in long %}{% if j == 2 %}{% break %}{% endif %}{{ i }}{{ j }}{{ loop.length }} {% endfor %}{% endfor %}",
    "{% macro f(a, b=2, c=a) %}{{ a }}-{{ b }}-{{ c }};{% endmacro %}{{ f(1) }}{{ f(1, c=3) }}{{ f(b=1, a=2) }}{{ f() }}", "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{% endmacro %}{{ f(b=2) }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{% set x = 1 %}{% macro f() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ f() }}", "{% macro f() %}  a  {% endmacro %}[{{ f()|trim }}]{{ f() is string }}",
    "{% macro f(a) %}<{{ caller() }}{{ a }}>{% endmacro %}{% call f(1) %}x{{ number }}{% endcall %}", "{% macro f() %}{{ caller(1, b=2) }}{% endmacro %}{% call(a, b) f() %}{{ a }}{{ b }}{% endcall %}",
    "{% macro f(a, b=0, c=0) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(*[1, 2]) }}{{ f(1, **{'c': 3}) }}{{ f(*[1], c=2) }}{{ dict(**pair)|length }}", "{{ dict(**5) }}", "{% call zero() %}{% endcall %}",
    "{% generation %}a{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}|", "{% filter upper %}a{{ words }}{% endfilter %}", "{% filter indent(2) %}a\nb{% endfilter %}", "{{ raise_exception('no') }}", "{{ strftime_now('%Y-%m-%d %H:%M %b %B %A %j %%') }}",
    "{% for i in range(3) %}{{ i }}{% endfor %}{{ range(2, 8, 3)|list }}{{ range(3, 0, -1)|list }}", "{{ range(1000000)|list }}", "{{ dict(a=1, b='x') }}{{ dict({'z': 1}, y=2) }}", "{{ pair.update({'b': 1}) }}", "{{ long.append(6) }}",
    "{% if not (flag and zero) or missing is defined %}ok{% endif %}", "{{ loop }}|{% for i in [1, 2] %}{{ loop.index }}{% endfor %}", "{% for m in rows %}{{ '' if loop.first else ', ' }}{{ m['name'] }}{% endfor %}",
    "{% bogus %}", "{% if flag %}", "{{ 1 + }}", "{{ 'a }}", "{% endif %}", "{{ a b }}", "{% for i in long %}{% endif %}", "{{ number|bogus }}", "{{ number is bogus }}", "{{ (1 }}", "{{ [1 }}", "{% break %}", "{# never", "{{ 1 is defined is defined }}",
]

FILTERS = [
    "[{{ text|trim }}] [{{ ' \u00a0x\u3000'|trim }}] [{{ 'xxaxx'|trim('x') }}]", "{{ pair|tojson }}", "{{ pair|tojson(indent=2) }}", "{{ deep|tojson(indent=4) }}", "{{ quote|tojson }}{{ text|tojson }}", "{{ text|tojson(ensure_ascii=true) }}{{ '😀'|tojson(ensure_ascii=true) }}",
    "{{ [empty, {}, 1.0, 1e20, none, true]|tojson }}{{ [empty, {}]|tojson(indent=2) }}", "{{ pair|tojson(separators=(',', ':')) }}{{ pair|tojson(sort_keys=true) }}", "{{ missing|tojson }}", "{{ {1: 2, none: 3}|tojson }}",
    "{{ long|length }}{{ pair|count }}{{ text|length }}{{ missing|length }}", "{{ 5|length }}", "{{ 'aBc'|upper }}{{ 'aBc'|lower }}{{ \"it's a-b (c) d_e\"|title }}{{ 'aBC dE'|capitalize }}{{ none|upper }}{{ 1|lower }}",
    "{{ long|join(', ') }}{{ long|join }}{{ rows|join('-', attribute='name') }}{{ 'abc'|join('.') }}{{ [1, none]|join('|') }}", "{{ missing|default('d') }}{{ none|default('d') }}{{ ''|default('d', true) }}{{ none|default('e', boolean=true) }}{{ 0|d(1) }}{{ missing|d }}|",
    "{{ long|first }}{{ long|last }}{{ empty|first }}|{{ 'añ'|last }}{{ pair|first }}", "{{ pair|list }}{{ 'abc'|list }}{{ pair|items|list }}{{ missing|items|list }}", "{{ 5|items|list }}", "{{ 5|string ~ none|string }}{{ [1]|string }}",
    "{{ '42'|int }}{{ ' 7 '|int }}{{ '3.9'|int }}{{ 3.9|int }}{{ -3.9|int }}{{ 'x'|int }}{{ 'x'|int(5) }}{{ none|int }}{{ '2.5'|float }}{{ 'x'|float }}{{ 3|float }}{{ 'y'|float(1.5) }}",
    "{{ 'aaa'|replace('a', 'b') }}{{ 'aaa'|replace('a', 'b', 2) }}{{ 'ab'|replace('', '-') }}", "{{ rows|map(attribute='name')|list }}{{ rows|map(attribute='in.x')|list }}{{ rows|map(attribute='q', default=0)|list }}{{ ['a']|map('upper')|list }}{{ none|map('upper')|list }}",
    "{{ rows|selectattr('name', 'equalto', 'a')|list }}{{ rows|selectattr('n', '>', 1)|map(attribute='n')|list }}{{ rows|selectattr('in')|list|length }}{{ rows|rejectattr('in', 'defined')|map(attribute='name')|list }}",
    "{{ rows|selectattr('name', 'in', ['a', 'b'])|list|length }}{{ long|select('odd')|list }}{{ long|reject('odd')|list }}{{ [0, 1, '']|select|list }}{{ [0, 1]|reject|list }}{{ long|select('divisibleby', 2)|list }}", "{{ long|select('nope')|list }}",
    "{{ long|reverse|list }}{{ 'abc'|reverse }}", "{{ [3, 1, 2]|sort }}{{ [3, 1, 2]|sort(reverse=true) }}{{ ['b', 'A', 'c']|sort }}{{ ['b', 'A']|sort(case_sensitive=true) }}{{ rows|sort(attribute='n')|map(attribute='n')|list }}",
    "{{ ['a', 'A', 'b', 'a']|unique|list }}{{ rows|unique(attribute='name')|list|length }}", "{{ {'b': 1, 'a': 2}|dictsort }}{{ {'b': 1, 'a': 2}|dictsort(by='value', reverse=true) }}", "{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb\n\nc'|indent(2, true) }}|{{ 'a\n\nb'|indent(1, blank=true) }}|{{ 'a\nb'|indent('>>') }}",
    "{{ 'x'|safe }}", "{{ 2.567|round(2) }}{{ 2.5|round }}{{ 3|round }}", "{{ ('a', 1)|list }}{{ (1, 2)|tojson }}", "{{ -number|abs }}", "{{ 'a' ~ 'b'|upper }}", "{{ ('a' ~ 'b')|upper }}", "{{ [1, 'a']|sort }}",
]

TESTS = [
    "{{ text is string }}{{ pair is mapping }}{{ pair is iterable }}{{ pair is sequence }}{{ text is iterable }}{{ long is sequence }}{{ 5 is iterable }}{{ missing is iterable }}{{ nothing is none }}{{ long is string }}",
    "{{ 1 is number }}{{ true is number }}{{ 1 is integer }}{{ true is integer }}{{ 1.5 is float }}{{ true is boolean }}{{ 1 is boolean }}{{ true is true }}{{ 1 is true }}{{ false is false }}{{ none is false }}",
    "{{ missing is defined }}{{ missing is undefined }}{{ missing is not defined }}{{ rows[0].q is defined }}{{ rows[0].name is defined }}{{ missing is none }}", "{{ 3 is odd }}{{ 4 is even }}{{ 9 is divisibleby 3 }}{{ 9 is divisibleby(2) }}",
    "{{ 1 is equalto 1 }}{{ 1 is eq(2) }}{{ 'a' is in ['a'] }}{{ 'a' is not in 'b' }}{{ none is sameas none }}{{ flag is sameas true }}{{ 1 is sameas true }}{{ 2 is gt 1 }}{{ 2 is lt(1) }}{{ 1 is ne 2 }}",
    "{{ 'A' is upper }}{{ 'a' is lower }}{{ 'aB' is upper }}{{ range is callable }}{{ 'x' is callable }}{{ 'upper' is filter }}{{ 'defined' is test }}{{ 'no' is filter }}", "{{ missing.x is defined }}", "{{ not missing is defined }}", "{{ 1 is number and 2 is number }}",
]

METHODS = [
    "[{{ text.strip() }}][{{ 'xyaxy'.strip('xy') }}][{{ text.lstrip() }}][{{ text.rstrip() }}][{{ '\n\na\n'.lstrip('\n') }}][{{ 'é漢é'.strip('é') }}]", "{{ words.split() }}{{ words.split(' ') }}{{ words.split(' ', 1) }}{{ words.split(none, 1) }}{{ 'a,b,'.split(',') }}{{ ''.split() }}{{ ''.split(',') }}",
    "{{ words.rsplit(' ', 1) }}{{ words.rsplit(none, 1) }}{{ words.rsplit() }}", "{{ 'a'.split('') }}", "{{ words.startswith('one') }}{{ words.endswith('x') }}{{ words.startswith(('x', 'o')) }}{{ ''.startswith('') }}", "{{ words.startswith(1) }}",
    "{{ 'aBc'.upper() }}{{ 'aBc'.lower() }}{{ \"it's a-b\".title() }}{{ 'aB cD'.capitalize() }}", "{{ 'aaa'.replace('a', 'b') }}{{ 'aaa'.replace('a', 'b', 1) }}{{ 'é'.replace('', '.') }}", "{{ text.find('w') }}{{ text.find('zz') }}{{ text.rfind('l') }}{{ 'aXbX'.count('X') }}",
    "{{ ', '.join(['a', 'b']) }}", "{{ ','.join([1]) }}", "{{ 'a\nb\r\nc'.splitlines() }}", "{{ pair.keys()|list }}{{ pair.values()|list }}{{ pair.items()|list }}", "{{ 'prefix-x'.removeprefix('prefix-') }}{{ 'x.py'.removesuffix('.py') }}{{ '12'.isdigit() }}{{ 'a1'.isalpha() }}",
    "{{ 'a'.nope() }}", "{{ pair.nope }}|", "{{ 'x'.upper().lower()|upper }}", "{{ '</think>x</think>y'.split('</think>')[-1].lstrip('\n') }}", "{{ 'abc'.split('b')[0].split('z')[-1] }}",
]

PIECES = WHITESPACE + VALUES + STATEMENTS + FILTERS + TESTS + METHODS
