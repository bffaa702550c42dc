-- Everything that must survive. Columns are TEXT or BIGINT only, truth values are 0 and 1, times are
-- milliseconds since the epoch. Numbers are never given twice (AUTOINCREMENT): a delivery's number
-- names its token in a tmux session that may outlive the row.

CREATE TABLE work_items (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    ref_key        TEXT NOT NULL UNIQUE,
    ref            TEXT NOT NULL,
    host           TEXT NOT NULL,
    repo_key       TEXT NOT NULL,
    repo_id        BIGINT,
    number         BIGINT NOT NULL,
    kind           TEXT NOT NULL,
    title          TEXT NOT NULL,
    url            TEXT NOT NULL,
    author         TEXT,
    is_open        BIGINT NOT NULL,
    closed_at      BIGINT,
    merged         BIGINT NOT NULL DEFAULT 0,
    armed          BIGINT NOT NULL DEFAULT 0,
    armed_count    BIGINT NOT NULL DEFAULT 0,
    armed_by       TEXT,
    control        TEXT,
    control_actor  TEXT,
    control_at     BIGINT,
    baseline_at    BIGINT NOT NULL,
    next_number    BIGINT NOT NULL DEFAULT 1,
    dirty_mark     BIGINT NOT NULL DEFAULT 0,
    clean_mark     BIGINT NOT NULL DEFAULT 0,
    details_at     BIGINT,
    bound_to       TEXT,
    head_sha       TEXT,
    head_branch    TEXT,
    same_repo      BIGINT,
    ci_settled_sha TEXT,
    updated_at     BIGINT NOT NULL,
    listed_at      BIGINT
);

CREATE INDEX work_items_by_repo ON work_items (repo_key, is_open);
CREATE INDEX work_items_by_repo_id ON work_items (host, repo_id, number) WHERE repo_id IS NOT NULL;
CREATE INDEX work_items_dirty ON work_items (repo_key) WHERE dirty_mark > clean_mark;

CREATE TABLE events (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    key         TEXT NOT NULL UNIQUE,
    object      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    source      TEXT NOT NULL,
    guid        TEXT,
    actor       TEXT,
    payload     TEXT,
    occurred_at BIGINT NOT NULL,
    received_at BIGINT NOT NULL
);

CREATE INDEX events_by_object ON events (object);
CREATE INDEX events_with_payload ON events (received_at) WHERE payload IS NOT NULL;

CREATE TABLE deliveries (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id          BIGINT NOT NULL REFERENCES events (id),
    item_id           BIGINT NOT NULL REFERENCES work_items (id),
    number            BIGINT NOT NULL,
    class             TEXT NOT NULL,
    batch             TEXT,
    state             TEXT NOT NULL,
    reason            TEXT,
    error             TEXT,
    attempts          BIGINT NOT NULL DEFAULT 0,
    attempt_begun     BIGINT NOT NULL DEFAULT 0,
    next_at           BIGINT NOT NULL,
    claim_lead        BIGINT NOT NULL DEFAULT 0,
    claim_token       TEXT,
    claim_host        TEXT,
    claim_pid         BIGINT,
    claim_start       BIGINT,
    claim_boot        TEXT,
    lease_until       BIGINT,
    intent_owner      TEXT,
    intent_expires_at BIGINT,
    by_hand           BIGINT NOT NULL DEFAULT 0,
    possible_repeat   BIGINT NOT NULL DEFAULT 0,
    typed             BIGINT NOT NULL DEFAULT 0,
    accepted_at       BIGINT NOT NULL,
    settled_at        BIGINT,
    CHECK ((state = 'claimed') = (claim_token IS NOT NULL)),
    CHECK (claim_lead = 0 OR state = 'claimed')
);

-- One claim per work item, whoever asks: the guarantee that the selects only rely on.
CREATE UNIQUE INDEX deliveries_one_claim ON deliveries (item_id) WHERE claim_lead = 1;
CREATE INDEX deliveries_by_event ON deliveries (event_id);
CREATE INDEX deliveries_by_item ON deliveries (item_id, number);
CREATE INDEX deliveries_by_token ON deliveries (claim_token) WHERE claim_token IS NOT NULL;
CREATE INDEX deliveries_waiting ON deliveries (class, id, next_at) WHERE state IN ('pending', 'held');
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state IN ('pending', 'held');
CREATE INDEX deliveries_queue ON deliveries (item_id, class, number) WHERE state IN ('pending', 'held');
CREATE INDEX deliveries_abandoned ON deliveries (id) WHERE state = 'abandoned';

CREATE TABLE give_ups (
    delivery_id BIGINT NOT NULL REFERENCES deliveries (id),
    version     TEXT NOT NULL,
    PRIMARY KEY (delivery_id, version)
);

CREATE TABLE sessions (
    id                         INTEGER PRIMARY KEY AUTOINCREMENT,
    item_id                    BIGINT NOT NULL REFERENCES work_items (id),
    minted_ref                 TEXT NOT NULL,
    host                       TEXT NOT NULL,
    owner                      TEXT NOT NULL,
    harness                    TEXT NOT NULL,
    harness_session_id         TEXT NOT NULL,
    cwd                        TEXT NOT NULL,
    status                     TEXT NOT NULL,
    status_since               BIGINT NOT NULL,
    registered_at              BIGINT,
    boot_delivery              BIGINT,
    tmux_socket                TEXT,
    server_pid                 BIGINT,
    server_start               BIGINT,
    tmux_session_id            TEXT,
    pane                       TEXT,
    host_pid                   BIGINT,
    host_start                 BIGINT,
    harness_pid                BIGINT,
    harness_start              BIGINT,
    boot_id                    TEXT,
    attempt_owner              TEXT,
    attempt_harness_session_id TEXT,
    attempt_boot_delivery      BIGINT,
    created_at                 BIGINT NOT NULL,
    last_event_at              BIGINT,
    closed_at                  BIGINT
);

CREATE UNIQUE INDEX sessions_one_open ON sessions (item_id) WHERE status <> 'closed';
CREATE INDEX sessions_by_item ON sessions (item_id);

CREATE TABLE cursors (
    name         TEXT PRIMARY KEY,
    etag         TEXT,
    since        BIGINT,
    last_success BIGINT NOT NULL
);

CREATE TABLE hosts (
    id        TEXT PRIMARY KEY,
    name      TEXT NOT NULL,
    version   TEXT NOT NULL,
    last_seen BIGINT NOT NULL
);
