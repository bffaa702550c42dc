//! The rows of work items: found by name or by number, made at first sight, renamed.

use sqlx::SqliteConnection;

use super::error::Fault;
use super::rows::{self, ItemRow, big, item_columns, ms};
use super::seen::ItemSighting;
use crate::model::{Login, WorkItemRef};

pub(super) async fn by_id(conn: &mut SqliteConnection, id: i64) -> Result<ItemRow, Fault> {
    let row = sqlx::query(concat!(
        "SELECT ",
        item_columns!(),
        " FROM work_items w WHERE w.id = $1"
    ))
    .bind(id)
    .fetch_one(conn)
    .await?;
    rows::item(&row)
}

pub(super) async fn by_key(
    conn: &mut SqliteConnection,
    item: &WorkItemRef,
) -> Result<Option<ItemRow>, Fault> {
    let row = sqlx::query(concat!(
        "SELECT ",
        item_columns!(),
        " FROM work_items w WHERE w.ref_key = $1"
    ))
    .bind(item.key())
    .fetch_optional(conn)
    .await?;
    row.as_ref().map(rows::item).transpose()
}

/// Finds an item's row, also under the name that its repository had before a rename.
pub(super) async fn find(
    conn: &mut SqliteConnection,
    item: &WorkItemRef,
    repo_id: Option<u64>,
) -> Result<Option<ItemRow>, Fault> {
    let named = by_key(conn, item).await?;
    let Some(repo_id) = repo_id else {
        return Ok(named);
    };
    match named {
        Some(row) if row.repo_id == Some(repo_id) => return Ok(Some(row)),
        Some(row) if row.repo_id.is_none() => {
            sqlx::query("UPDATE work_items SET repo_id = $2 WHERE id = $1")
                .bind(row.id)
                .bind(big(repo_id))
                .execute(&mut *conn)
                .await?;
            return by_id(conn, row.id).await.map(Some);
        }
        // Another repository has taken the name: its former holder keeps its row, found by its id.
        Some(row) => {
            sqlx::query("UPDATE work_items SET ref_key = $2 WHERE id = $1")
                .bind(row.id)
                .bind(format!("{}:{}", row.id, item.key()))
                .execute(&mut *conn)
                .await?;
        }
        None => {}
    }
    let renamed = sqlx::query("SELECT id FROM work_items WHERE host = $1 AND repo_id = $2 AND number = $3 ORDER BY id LIMIT 1")
        .bind(item.repo().host().to_ascii_lowercase())
        .bind(big(repo_id))
        .bind(big(item.number()))
        .fetch_optional(&mut *conn)
        .await?;
    let Some(row) = renamed else {
        return Ok(None);
    };
    let id = rows::Reader::new(&row, "work_items")?.id();
    rename(conn, id, item).await.map(Some)
}

async fn rename(
    conn: &mut SqliteConnection,
    id: i64,
    item: &WorkItemRef,
) -> Result<ItemRow, Fault> {
    let before = by_id(conn, id).await?;
    sqlx::query("UPDATE work_items SET ref_key = $2, ref = $3, repo_key = $4 WHERE id = $1")
        .bind(id)
        .bind(item.key())
        .bind(item.to_string())
        .bind(item.repo().key())
        .execute(&mut *conn)
        .await?;
    sqlx::query("UPDATE work_items SET bound_to = $2 WHERE lower(bound_to) = $1")
        .bind(before.item.key())
        .bind(item.to_string())
        .execute(&mut *conn)
        .await?;
    by_id(conn, id).await
}

/// Makes the row of an item that no ingress has seen before; its details are still missing.
pub(super) async fn insert(
    conn: &mut SqliteConnection,
    seen: &ItemSighting,
) -> Result<ItemRow, Fault> {
    let repo = seen.item.repo();
    let closed_at = (!seen.open).then(|| ms(seen.closed_at.unwrap_or(seen.seen_at)));
    sqlx::query(
        "INSERT INTO work_items (ref_key, ref, host, repo_key, repo_id, number, kind, title, url, \
         author, is_open, closed_at, merged, baseline_at, dirty_mark, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 1, $15)",
    )
    .bind(seen.item.key())
    .bind(seen.item.to_string())
    .bind(repo.host().to_ascii_lowercase())
    .bind(repo.key())
    .bind(seen.repo_id.map(big))
    .bind(big(seen.item.number()))
    .bind(seen.kind.as_str())
    .bind(&seen.title)
    .bind(&seen.url)
    .bind(seen.author.as_ref().map(Login::as_str))
    .bind(i64::from(seen.open))
    .bind(closed_at)
    .bind(i64::from(seen.merged))
    .bind(ms(seen.baseline_at))
    .bind(ms(seen.updated_at))
    .execute(&mut *conn)
    .await?;
    by_key(conn, &seen.item)
        .await?
        .ok_or(Fault::Sql(sqlx::Error::RowNotFound))
}

/// Says by the server's clock since when what is said on an item is news.
///
/// A command that introduced it knew only this machine's clock, which may be wrong; how long ago that
/// was can be told by it all the same.
pub(super) async fn set_baseline(
    conn: &mut SqliteConnection,
    id: i64,
    baseline_at: i64,
) -> Result<(), Fault> {
    sqlx::query("UPDATE work_items SET baseline_at = $2 WHERE id = $1")
        .bind(id)
        .bind(baseline_at)
        .execute(conn)
        .await?;
    Ok(())
}

pub(super) async fn refresh(
    conn: &mut SqliteConnection,
    seen: &ItemSighting,
    id: i64,
) -> Result<(), Fault> {
    sqlx::query(
        "UPDATE work_items SET ref = $2, kind = $3, title = $4, url = $5, author = COALESCE($6, author), \
         updated_at = $7, head_sha = COALESCE($8, head_sha), head_branch = COALESCE($9, head_branch), \
         same_repo = COALESCE($10, same_repo) WHERE id = $1",
    )
    .bind(id)
    .bind(seen.item.to_string())
    .bind(seen.kind.as_str())
    .bind(&seen.title)
    .bind(&seen.url)
    .bind(seen.author.as_ref().map(Login::as_str))
    .bind(ms(seen.updated_at))
    .bind(seen.pull.as_ref().map(|pull| &pull.head_sha))
    .bind(seen.pull.as_ref().map(|pull| &pull.head_branch))
    .bind(seen.pull.as_ref().map(|pull| i64::from(pull.same_repo)))
    .execute(conn)
    .await?;
    Ok(())
}
