// node verify.mjs RECEIPT ROWS: whether a receipt is of these rows. Needs only Node.js.
// RECEIPT: one entry of a step's `receipts`. ROWS: what was released: the step's `groups`; with answers or
// attachments {"groups": …, "attachments": [[step, name, sha256], …], "answers": …}.
import { createHash, createPublicKey, randomUUID, verify } from "node:crypto";
import { readFileSync } from "node:fs";

/** JSON in which an integer is a BigInt: doubles cannot hold 2^53+1. A mark that nobody can know leads to the integers. */
const mark = randomUUID();
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const marked = (token) => (/^-?(0|[1-9]\d*)$/.test(token) ? `"${mark}${token}"` : token);
const refuse = (why) => process.exit(console.log(why) ?? 1);
function found(key, value) {
  if (typeof value === "number" && !Number.isFinite(value)) refuse("a number is too large");
  return typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value;
}
const inside = (value) => (value && typeof value === "object" ? Object.values(value) : []);
const names = (value) => inside(value).reduce((sum, one) => sum + names(one) + !Array.isArray(value), 0);
function read(file) {
  const text = readFileSync(file, "utf8"), value = JSON.parse(text.replace(TOKENS, marked), found);
  const written = text.match(/"(?:[^"\\]|\\.)*"\s*:?/g)?.filter((one) => one.endsWith(":")).length ?? 0;
  return written > names(value) ? refuse("a key is repeated") : value; // readers take different ones
}

/** RFC 8785, but integers by their digits. */
function canonical(value) {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

const hash = (bytes) => createHash("sha256").update(bytes).digest();
const digest = (value) => hash(canonical(value));
const raw = (text) => Buffer.from(text, "base64url");
function fault(receipt, rows) {
  const { statement, digests } = receipt;
  const client = JSON.parse(raw(receipt.clientData));
  const data = raw(receipt.authenticatorData);
  const host = new URL(client.origin).hostname;
  if (receipt.format !== "wfcore-receipt/1" || statement.decision !== "approve") return "no approval";
  if (statement.itemsHash !== digest(rows).toString("hex")) return "the rows are not the signed ones";
  if (!digests.includes(digest(statement).toString("hex"))) return "the statement was changed";
  if (client.type !== "webauthn.get" || client.crossOrigin) return "no confirmation";
  if (!raw(client.challenge).equals(digest(digests))) return "other digests were signed";
  if (host !== statement.rpId && !host.endsWith(`.${statement.rpId}`)) return "made at another address";
  if (!data.subarray(0, 32).equals(hash(statement.rpId))) return "made for another address";
  if ((data[32] & 5) !== 5) return "the authenticator did not verify the person";
  const key = createPublicKey({ key: raw(receipt.publicKey), format: "der", type: "spki" });
  const types = { "-7": "ec", "-257": "rsa", "-8": "ed25519" };
  if (types[receipt.algorithm] !== key.asymmetricKeyType) return "the algorithm is not of this key";
  const signed = Buffer.concat([data, hash(raw(receipt.clientData))]);
  const how = key.asymmetricKeyType === "ed25519" ? null : "sha256";
  return verify(how, signed, key, raw(receipt.signature)) ? null : "the signature is not of this key";
}

const [receipt, rows] = process.argv.slice(2).map((file) => read(file));
const why = fault(receipt, rows), { accountId, credentialId } = receipt.statement;
console.log(why ?? `fits: signed by ${accountId} with the key ${credentialId}`);
process.exit(why ? 1 : 0);
