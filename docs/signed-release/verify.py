"""python verify.py RECEIPT ROWS: whether a receipt is of these rows. Needs only `cryptography`.

RECEIPT: one entry of a step's `receipts`. ROWS: what was released: the step's `groups`; with answers
or attachments {"groups": …, "attachments": [[step, name, sha256], …], "answers": …}.
"""
import base64, hashlib, json, sys
from decimal import Decimal
from urllib.parse import urlsplit
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding


def once(pairs):  # of two equal keys, readers take different ones
    return dict(pairs) if len(dict(pairs)) == len(pairs) else sys.exit(print("a key is repeated") or 1)

def number(x):  # as JavaScript writes it
    if x - x: sys.exit(print("a number is too large") or 1)
    sign, digits, e = Decimal(repr(x)).normalize().as_tuple()
    text, minus, n = "".join(map(str, digits)), "-" if sign and x else "", len(digits) + e
    if len(text) <= n <= 21: return minus + text + "0" * (n - len(text))
    if 0 < n <= 21: return minus + text[:n] + "." + text[n:]
    if -6 < n <= 0: return minus + "0." + "0" * -n + text
    return minus + text[0] + ("." + text[1:] if len(text) > 1 else "") + "e%+d" % (n - 1)


def canonical(v):  # RFC 8785, but integers by their digits
    if isinstance(v, dict):
        keys = sorted(v, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(canonical(k) + ":" + canonical(v[k]) for k in keys) + "}"
    if isinstance(v, list): return "[" + ",".join(map(canonical, v)) + "]"
    return number(v) if isinstance(v, float) else json.dumps(v, ensure_ascii=False)


def sha256(v): return hashlib.sha256(canonical(v).encode("utf-8", "surrogatepass"))
def raw(text): return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def fault(r, rows):
    s, client = r["statement"], json.loads(raw(r["clientData"]))
    data, host = raw(r["authenticatorData"]), urlsplit(client["origin"]).hostname or ""
    if r["format"] != "wfcore-receipt/1" or s["decision"] != "approve": return "no approval"
    if s["itemsHash"] != sha256(rows).hexdigest(): return "the rows are not the signed ones"
    if sha256(s).hexdigest() not in r["digests"]: return "the statement was changed"
    if client["type"] != "webauthn.get" or client.get("crossOrigin"): return "no confirmation"
    if raw(client["challenge"]) != sha256(r["digests"]).digest(): return "other digests were signed"
    if host != s["rpId"] and not host.endswith("." + s["rpId"]): return "made at another address"
    if data[:32] != hashlib.sha256(s["rpId"].encode()).digest(): return "made for another address"
    if data[32] & 5 != 5: return "the authenticator did not verify the person"
    key, sha = serialization.load_der_public_key(raw(r["publicKey"])), hashes.SHA256()
    how = {-7: lambda: (ec.ECDSA(sha),), -257: lambda: (padding.PKCS1v15(), sha), -8: tuple}
    signed = data + hashlib.sha256(raw(r["clientData"])).digest()
    try: key.verify(raw(r["signature"]), signed, *how[r["algorithm"]]())
    except InvalidSignature: return "the signature is not of this key"


receipt, rows = (json.load(open(file, encoding="utf-8"), object_pairs_hook=once) for file in sys.argv[1:])
why = fault(receipt, rows)
print(why or "fits: signed by %(accountId)s with the key %(credentialId)s" % receipt["statement"])
sys.exit(1 if why else 0)
