"""Webhooks: one-way key mode, limits of plans, who may trigger, what their counts say."""

import re
import time

import pytest
from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

from wfcore.errors import (
    AuthReason,
    Conflict,
    Forbidden,
    IllegalMove,
    InvalidInput,
    Unauthenticated,
)
from wfcore.model.access import Principal, Tier
from wfcore.model.webhook import AuthMode, DisabledReason, Tally, WebhookStatus
from wfcore.rules.limits import MAX_NAME, WEBHOOKS_PER_ACCOUNT
from wfcore.rules.variables import PRINTABLE
from wfcore.rules.webhooks.webhook import (
    Day,
    Stats,
    back_within,
    bound,
    check_mapping,
    check_name,
    disabled,
    enabled,
    older_than,
    over_limit,
    require_bound_key,
    require_own_key,
    require_plan,
    require_room,
    require_triggerable,
    stats,
    utc_date,
)
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.values import (
    accounts,
    api_keys,
    instants,
    json_values,
    texts,
    webhooks,
)
from wfcore.time import EpochMs, later

LIMITS = {Tier.FREE: 0, Tier.PRO: 3, Tier.TEAM: 10, Tier.ENTERPRISE: None}
key_ids = st.none() | st.sampled_from(("key_1", "key_2"))
many_webhooks = st.integers(0, 13).flatmap(
    lambda count: st.tuples(*(webhooks(f"wh_{number}") for number in range(count)))
)


def active(hooks):
    return [webhook for webhook in hooks if webhook.status is WebhookStatus.ACTIVE]


def test_the_numbers_of_the_plans():
    """LM-6: Free none, Pro 3, Team 10, Enterprise any number."""
    assert WEBHOOKS_PER_ACCOUNT == LIMITS


@given(webhooks(), st.lists(key_ids, max_size=5))
def test_the_move_to_key_mode_is_one_way(webhook, changes):
    """WH-7: once bound, always bound; another key may come, none may not."""
    for key_id in changes:
        if key_id is None and webhook.auth_mode is AuthMode.API_KEY:
            with pytest.raises(Conflict):
                bound(webhook, None)
            continue
        before, webhook = webhook, bound(webhook, key_id)
        assert webhook == evolve(before, api_key_id=key_id or before.api_key_id)


@given(webhooks())
def test_a_bound_key_wins_over_a_secret(webhook):
    """WH-11: signatures count only without a key; with neither the URL is the credential."""
    if webhook.api_key_id is not None:
        wanted = AuthMode.API_KEY
    else:
        wanted = AuthMode.SIGNATURE if webhook.secret_key else AuthMode.NONE
    assert webhook.auth_mode is wanted


@given(webhooks().filter(lambda w: w.api_key_id), accounts(), st.none() | api_keys())
def test_only_the_bound_key_of_its_own_account_triggers(webhook, account, key):
    """WH-1: another key, another account, no key: each refused with its reason."""
    who = Principal(account, key)
    if key is not None and (key.id, account.id) == (webhook.api_key_id, webhook.owner_id):
        require_bound_key(webhook, who)
        return
    with pytest.raises(Unauthenticated) as refused:
        require_bound_key(webhook, who)
    right_key = key is not None and key.id == webhook.api_key_id
    wanted = AuthReason.WRONG_ACCOUNT if right_key else AuthReason.NOT_BOUND_KEY
    assert refused.value.reason is wanted


@given(webhooks())
def test_a_disabled_webhook_does_not_trigger(webhook):
    """WH-2: it is a conflict, whatever disabled it."""
    if webhook.status is WebhookStatus.ACTIVE:
        require_triggerable(webhook)
    else:
        with pytest.raises(Conflict):
            require_triggerable(webhook)


@pytest.mark.parametrize("plan", Tier)
def test_webhooks_need_the_pro_plan(plan):
    """WH-3: Free has none, every other plan has."""
    if plan is Tier.FREE:
        with pytest.raises(Forbidden):
            require_plan(plan)
    else:
        require_plan(plan)


@given(st.sampled_from(Tier), many_webhooks)
def test_one_more_must_fit_the_plan(plan, hooks):
    """WH-4: disabled ones count; exactly the plan's number can be made, the oldest be active."""
    limit = LIMITS[plan]
    by_age = tuple(sorted(hooks, key=lambda hook: (hook.created_at, hook.id)))
    assert older_than("wh_new", hooks) == by_age
    for at, hook in enumerate(by_age):
        assert older_than(hook.id, hooks) == by_age[:at]
    if limit is None or len(hooks) < limit:
        require_room(plan, hooks)
    else:
        with pytest.raises(Conflict):
            require_room(plan, hooks)


@given(st.sampled_from(Tier), many_webhooks, st.randoms(use_true_random=False))
def test_a_downgrade_disables_the_newest(plan, hooks, random):
    """WH-5: as many as are over the number, the newest ones, whatever order they are given in."""
    oldest_first = sorted(hooks, key=lambda hook: (hook.created_at, hook.id))
    limit = len(hooks) if LIMITS[plan] is None else LIMITS[plan]
    over = tuple(active(oldest_first[limit:]))
    shuffled = list(hooks)
    random.shuffle(shuffled)
    assert over_limit(plan, hooks) == over_limit(plan, shuffled) == over


@given(st.sampled_from(Tier), many_webhooks)
def test_an_upgrade_brings_back_what_a_downgrade_took(plan, hooks):
    """WH-16: exactly what was active before, and nothing that was switched off by hand."""
    before = [evolve(hook, status=WebhookStatus.ACTIVE, disabled_reason=None) for hook in hooks]
    before[:1] = [disabled(hook, DisabledReason.MANUAL, NOW) for hook in before[:1]]
    over = over_limit(plan, before)
    after = [disabled(h, DisabledReason.PLAN_LIMIT, NOW) if h in over else h for h in before]
    assert back_within(plan, after) == ()
    assert [one.id for one in back_within(Tier.ENTERPRISE, after)] == [one.id for one in over]


@given(webhooks(), st.sampled_from(DisabledReason), st.sampled_from(DisabledReason), instants())
def test_the_first_reason_to_disable_stays(webhook, reason, later_reason, now):
    """WH-14, WH-15: disabling twice changes nothing; enabling forgets the reason."""
    off = disabled(webhook, reason, now)
    if webhook.status is WebhookStatus.ACTIVE:
        turned = {"status": WebhookStatus.DISABLED, "disabled_reason": reason, "updated_at": now}
        assert off == evolve(webhook, **turned)
    else:
        assert off is webhook
    assert disabled(off, later_reason, now) is off
    on = enabled(off, EpochMs(now + 1))
    assert on == evolve(
        webhook, status=WebhookStatus.ACTIVE, disabled_reason=None, updated_at=EpochMs(now + 1)
    )
    with pytest.raises(IllegalMove):
        enabled(on, now)


@given(st.none() | api_keys(), accounts(), instants())
@example(builders.key(expires_at=NOW), builders.account(), NOW)
def test_only_a_live_key_of_one_s_own_can_be_bound(key, owner, now):
    """WH-6: somebody else's, a revoked and an expired one are invalid input."""
    mine = key is not None and key.account_id == owner.id
    live = mine and key.revoked_at is None and (key.expires_at is None or now < key.expires_at)
    if live:
        assert require_own_key(key, owner, now) is key
    else:
        with pytest.raises(InvalidInput) as mistake:
            require_own_key(key, owner, now)
        assert mistake.value.field == "apiKeyId"


@given(st.none() | st.dictionaries(texts(1).filter(lambda name: "\0" not in name), texts(1)))
def test_a_mapping_is_kept_as_given(mapping):
    """WH-8: names to names, or nothing."""
    assert check_mapping(mapping) == mapping


@given(
    json_values().filter(lambda value: value is not None and not isinstance(value, dict))
    | st.dictionaries(texts(1), json_values().filter(lambda v: not isinstance(v, str)), min_size=1)
    | st.sampled_from([{"": "field"}, {"name": ""}, {"a\0": "field"}])
)
def test_any_other_mapping_is_refused(mapping):
    """WH-8: no list, no text, no empty name, no nested value."""
    with pytest.raises(InvalidInput, match="variableMapping"):
        check_mapping(mapping)


@given(st.text(max_size=300) | st.integers(199, 201).map("x".__mul__))
def test_a_name_has_some_letters_and_not_too_many(name):
    """LM-8, VM-7: 1 to 200 characters, not only blanks, none that a line cannot show."""
    if name.strip() and len(name) <= MAX_NAME and re.fullmatch(PRINTABLE, name):
        assert check_name(name) == name
    else:
        with pytest.raises(InvalidInput):
            check_name(name)


tallies = st.lists(
    st.builds(
        Tally,
        st.just("wh_1"),
        instants().map(utc_date),
        st.sampled_from([200, 202, 400, 401, 409, 429]),
        st.integers(1, 1_000),
        instants(),
    ),
    unique_by=lambda tally: (tally.date, tally.status),
)


@given(tallies)
def test_the_statistics_add_up(counted):
    """WH-9: days and statuses sum to the total, each answer counted once."""
    found = stats(counted)
    accepted = [tally for tally in counted if tally.status == 202]
    rejected = [tally for tally in counted if tally.status not in (200, 202)]

    def answers(among, **named) -> int:
        chosen = (t for t in among if all(getattr(t, k) == v for k, v in named.items()))
        return sum(tally.count for tally in chosen)

    dates = sorted({tally.date for tally in (*accepted, *rejected)})
    assert found == Stats(
        total=answers(counted),
        accepted=answers(accepted),
        ignored=answers(counted, status=200),
        rejected={str(t.status): answers(rejected, status=t.status) for t in rejected},
        last_triggered_at=max((tally.last_at for tally in accepted), default=None),
        daily=tuple(
            Day(date, answers(accepted, date=date), answers(rejected, date=date)) for date in dates
        ),
    )


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/Los_Angeles"])
def test_a_day_is_one_of_utc_wherever_the_server_stands(zone, monkeypatch):
    """WH-9: whatever its clock shows."""
    with monkeypatch.context() as there:
        there.setenv("TZ", zone)
        time.tzset()
        dates = [utc_date(later(NOW, at)) for at in (0, 6_399_999, 6_400_000)]
    time.tzset()
    assert dates == ["2023-11-14", "2023-11-14", "2023-11-15"]
