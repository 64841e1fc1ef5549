// GitHub's own library at work: `node octokit.mjs sign|verify SECRET [SIGNATURE]`, the body on stdin.
import { readFileSync } from "node:fs";
import { sign, verify } from "@octokit/webhooks-methods";

const [deed, secret, signature] = process.argv.slice(2);
const body = readFileSync(0, "utf8");
console.log(deed === "sign" ? await sign(secret, body) : await verify(secret, body, signature));
