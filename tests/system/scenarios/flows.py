"""Definitions that the scenarios run. Each caller applies them under a name of its own."""

REFUNDS = r"""
variables:
  customer: {type: string, default: nobody}
  limit: {type: number, default: 100}
steps:
  - name: find
    kind: code
    language: python
    source: |
      import json, os
      limit = int(os.environ["WF_VAR_limit"])
      rows = [{"id": n, "amount": limit * n} for n in (1, 2, 3)]
      print(json.dumps({"customer": os.environ["WF_VAR_customer"], "found": rows}))
  - name: review
    kind: manual_approval
    message: "Refunds of {{ variables.customer }}"
    groups:
      - name: refunds
        title: Refunds
        rows: "{{ steps.find.output.found }}"
        rowKey: id
        columns:
          - {key: id, title: Order, type: number, editable: false}
          - {key: amount, title: Amount, type: number, required: true}
  - name: pay
    kind: code
    language: bash
    source: |
      rows=$(grep -o '"refunds":\[[^]]*\]' "$WF_CONTEXT")
      printf '%s' "${rows#*:}" | tee "$WF_ARTIFACTS/paid.json"
output: "{{ steps.pay.output }}"
"""

REVIEW = """
steps:
  - {name: review, kind: manual_approval, message: Look}
  - {name: after, kind: code, language: bash, source: echo done}
"""

REVIEW_AT_ONCE = REVIEW.replace("message: Look", "message: Look, timeout: 300ms")

ECHO = """
variables:
  word: {type: string, default: nothing}
steps:
  - {name: say, kind: code, language: bash, source: 'printf %s "$WF_VAR_word"'}
"""

SLOW = """
steps:
  - name: wait
    kind: code
    language: bash
    source: |
      setsid -f sleep 600 >/dev/null 2>&1
      sleep 600
    timeout: 15m
  - {name: after, kind: code, language: bash, source: echo done}
"""
"""A step that does not end by itself, with a child that left its process group."""
