// A whole flow by a client that openapi-typescript typed: `node flow.js URL KEY WORKFLOW`.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Row = components["schemas"]["Row"];

const [url, key, workflow] = process.argv.slice(2) as [string, string, string];
const api = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });

function given<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const started = given(
  await api.POST("/api/v1/workflows/{id}/executions", {
    params: { path: { id: workflow }, query: { wait: 20 }, header: { "Idempotency-Key": "once" } },
    body: { inputs: { customer: "Ann" } },
  }),
);
const id = started.executionId;
const listed = given(
  await api.GET("/api/v1/approvals/execution/{executionId}", { params: { path: { executionId: id } } }),
);
const approval = given(
  await api.GET("/api/v1/approvals/{id}", { params: { path: { id: listed.approvals[0]!.id } } }),
);
const group = approval.reviewableGroups[0]!;
const rows: Row[] = [{ ...group.items[0], amount: 7 }];
const refused = await api.POST("/api/v1/approvals/{id}/approve", {
  params: { path: { id: approval.id } },
  body: { expectedItemsHash: "0".repeat(64) },
});
if (refused.response.status !== 409) throw new Error("other rows were approved");
const words: string = refused.error!.error;
const decided = given(
  await api.POST("/api/v1/approvals/{id}/approve", {
    params: { path: { id: approval.id } },
    body: { editedItems: { [group.name]: rows }, comment: words, expectedItemsHash: approval.itemsHash },
  }),
);
if (decided.status !== "APPROVED") throw new Error(decided.status);
const result = given(
  await api.GET("/api/v1/executions/{id}/result", { params: { path: { id }, query: { wait: 20 } } }),
);
const events = given(
  await api.GET("/api/v1/executions/{id}/events", { params: { path: { id } }, parseAs: "text" }),
);
const files = given(
  await api.GET("/api/v1/executions/{id}/artifacts", { params: { path: { id } } }),
);
const file = given(
  await api.GET("/api/executions/{id}/artifacts/{aid}/download", {
    params: { path: { id, aid: files.artifacts[0]!.id } },
    parseAs: "arrayBuffer",
  }),
);
const steps: number = Object.keys(result.stepResults).length;
console.log(result.status, steps, events.includes("execution.completed"), new TextDecoder().decode(file));
