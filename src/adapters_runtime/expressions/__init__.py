"""
The expression language inside `{{ }}`: the part of minijinja's language that definitions need.

The language has paths, subscripts, comparison, arithmetic, `and`, `or`, `not`, `… if … else …`,
`is defined` and the filters that `docs/definitions.md` names. It has no calls and no statements:
code steps are for everything else. Decision 8 says why the minijinja library is not used.

Expressions are evaluated over JSON in this process, with a budget: no code runs, an undefined name
is always an error, text cannot be multiplied, and no operation makes more than the budget allows.
`tokens` and `parse` read the text, `nodes` evaluate it, `filters` and `operators` are tables.
"""
