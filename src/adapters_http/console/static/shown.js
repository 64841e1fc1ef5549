// An approval whose rows nobody edits here: what was typed is kept, and what others do is told.

import { desk, place, plain } from "./desk.js";
import { follow } from "./follow.js";
import { look } from "./told.js";

desk.review = JSON.parse(place.state);
if (desk.review.status === "PENDING") follow(`${place.url}/live`, desk.review.version, look);
plain?.addEventListener("submit", () => (desk.review.status = "sent")); // what comes of it is on the next page
if (location.search === "?print=1") print();
