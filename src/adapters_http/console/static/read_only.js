// An approval whose rows cannot be edited here: drafts of comment and answers, and notices of changes by others.

import { desk, place, plain } from "./desk.js";
import { follow } from "./follow.js";
import { refresh } from "./notices.js";

desk.review = JSON.parse(place.state);
if (desk.review.status === "PENDING") follow(`${place.url}/live`, desk.review.version, refresh);
// the next page shows the result
plain?.addEventListener("submit", () => (desk.review.status = "sent"));
if (location.search === "?print=1") print();
