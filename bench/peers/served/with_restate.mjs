// Restate with a service in JavaScript: the same handlers as `with_restate.py`. It is called over
// HTTP/2 at the second port; the first port says that it is ready.

import { createServer } from "node:http";
import { createServer as createServer2 } from "node:http2";

import * as restate from "@restatedev/restate-sdk";

const sums = restate.service({
  name: "sums",
  handlers: {
    steps: async (ctx, count) => {
      for (let number = 0; number < count; number++) await ctx.run(`s${number}`, () => 1 + 2);
      return count;
    },
  },
});

const approval = restate.workflow({
  name: "approval",
  handlers: {
    run: async (ctx) => {
      ctx.set("asked", true);
      return await ctx.promise("decision");
    },
    asked: async (ctx) => (await ctx.get("asked")) ?? false,
    approve: async (ctx) => await ctx.promise("decision").resolve("yes"),
  },
});

const [ready, port] = process.argv.slice(2).map(Number);
const handler = restate.endpoint().bind(sums).bind(approval).http2Handler();
createServer2(handler).listen(port, "127.0.0.1", () => {
  createServer((_, answer) => answer.end("ready")).listen(ready, "127.0.0.1");
});
