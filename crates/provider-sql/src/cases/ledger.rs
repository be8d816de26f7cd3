//! The ledger of uploads: claimed once, loaded once, and shared with a program that only inserts.

use std::collections::BTreeSet;
use std::sync::Arc;

use identity_core::claim::{Kept, Owner, StoreError};
use tokio::task::JoinSet;

use super::Testbed;
use identity_core::claim::conformance::samples::numbered_key;
use identity_core::ledger::{
    Holder, Ledger, LedgerEntry, Uncompleted, Upload, UploadClaim, UploadState,
};

fn upload(key: &str) -> Upload {
    Upload {
        key: key.to_owned(),
        full_digest: "a1".repeat(32),
        source_path: "/inbox/roads.shp".to_owned(),
    }
}

fn holder(job: u64, attempt: u32) -> Holder {
    Holder {
        job: numbered_key(job),
        owner: Owner(u128::from(job) << 32 | u128::from(attempt)),
        attempt,
    }
}

async fn claim(bed: &impl Testbed, upload: &Upload, holder: &Holder) -> UploadClaim {
    bed.store().claim_upload(upload, holder).await.unwrap()
}

async fn standing(bed: &impl Testbed, key: &str) -> LedgerEntry {
    bed.store().upload(key).await.unwrap().unwrap()
}

/// The published load task's statement; whether it won the key.
async fn foreign_claim(bed: &impl Testbed, key: &str) -> bool {
    let sql = format!(
        "INSERT INTO ingest_ledger (upload_key, source_path) VALUES ('{key}', '/inbox/old.shp') \
         ON CONFLICT (upload_key) DO NOTHING RETURNING upload_key"
    );
    bed.execute(&sql).await == 1
}

async fn listed(bed: &impl Testbed, which: Uncompleted) -> Vec<String> {
    let page = bed.store().uploads(which, 100, None).await.unwrap();
    assert_eq!(page.next, None);
    page.entries.into_iter().map(|entry| entry.key).collect()
}

pub(crate) async fn an_upload_is_claimed_once_and_done_once_it_is_completed(bed: &impl Testbed) {
    let (upload, first, second) = (upload("k"), holder(1, 1), holder(2, 1));
    assert_eq!(bed.store().upload("k").await.unwrap(), None);
    assert_eq!(claim(bed, &upload, &first).await, UploadClaim::Won);
    let entry = standing(bed, "k").await;
    assert_eq!(entry.state(), UploadState::Open);
    assert_eq!(entry.holder.as_ref(), Some(&first));
    assert_eq!(entry.full_digest.as_ref(), Some(&upload.full_digest));
    assert_eq!(entry.source_path.as_deref(), Some("/inbox/roads.shp"));
    assert!(entry.claimed_at.unwrap().0 > 1_700_000_000, "{entry:?}");
    assert_eq!(claim(bed, &upload, &second).await, UploadClaim::Held(entry));

    let completed = bed.store().complete_upload("k", &second).await;
    assert_eq!(completed.unwrap(), Kept::LeaseLost);
    for _ in 0..2 {
        // The second time is that of a lost reply.
        let completed = bed.store().complete_upload("k", &first).await;
        assert_eq!(completed.unwrap(), Kept::Yes);
    }
    let entry = standing(bed, "k").await;
    assert_eq!(entry.state(), UploadState::Done);
    assert!(entry.completed_at >= entry.claimed_at);
    for holder in [first, second] {
        let answer = claim(bed, &upload, &holder).await;
        assert_eq!(answer, UploadClaim::Done(entry.clone()));
    }
}

pub(crate) async fn a_later_attempt_of_the_same_job_goes_on_and_an_earlier_one_is_out(
    bed: &impl Testbed,
) {
    let upload = upload("k");
    let (first, second) = (holder(1, 1), holder(1, 2));
    for holder in [&first, &first, &second, &second] {
        assert_eq!(claim(bed, &upload, holder).await, UploadClaim::Won);
    }
    let entry = standing(bed, "k").await;
    assert_eq!(claim(bed, &upload, &first).await, UploadClaim::Held(entry));
    let completed = bed.store().complete_upload("k", &first).await;
    assert_eq!(completed.unwrap(), Kept::LeaseLost);
    let completed = bed.store().complete_upload("k", &second).await;
    assert_eq!(completed.unwrap(), Kept::Yes);
}

pub(crate) async fn a_row_of_the_load_task_is_honoured_as_done_and_listed_as_foreign(
    bed: &impl Testbed,
) {
    assert!(foreign_claim(bed, "theirs").await);
    assert!(!foreign_claim(bed, "theirs").await);
    let (upload, holder) = (upload("theirs"), holder(1, 1));
    let entry = standing(bed, "theirs").await;
    assert_eq!(
        (entry.state(), &entry.holder, &entry.full_digest),
        (UploadState::Foreign, &None, &None)
    );
    let answer = claim(bed, &upload, &holder).await;
    assert_eq!(answer, UploadClaim::Done(entry.clone()));
    assert_eq!(standing(bed, "theirs").await, entry);
    let completed = bed.store().complete_upload("theirs", &holder).await;
    assert_eq!(completed.unwrap(), Kept::LeaseLost);

    let ours = Upload {
        key: "ours".to_owned(),
        ..upload
    };
    assert_eq!(claim(bed, &ours, &holder).await, UploadClaim::Won);
    assert!(!foreign_claim(bed, "ours").await);
    assert_eq!(listed(bed, Uncompleted::Foreign).await, ["theirs"]);
    assert_eq!(listed(bed, Uncompleted::Ours).await, ["ours"]);
    bed.store().complete_upload("ours", &holder).await.unwrap();
    assert!(listed(bed, Uncompleted::Ours).await.is_empty());
}

pub(crate) async fn a_released_upload_is_won_again_and_its_old_holder_is_out(bed: &impl Testbed) {
    assert_eq!(bed.store().release_upload("k").await.unwrap(), None);
    let upload = upload("k");
    let (first, second) = (holder(1, 1), holder(2, 1));
    // Whether another program had it, a job is at it, or it is done.
    foreign_claim(bed, "k").await;
    for holder in [&first, &second, &first] {
        let released = bed.store().release_upload("k").await.unwrap().unwrap();
        assert_eq!(released.state(), UploadState::Released);
        let page = bed.store().uploads(Uncompleted::Ours, 1, None).await;
        assert_eq!(
            page.unwrap().entries.len(),
            usize::from(released.holder.is_some())
        );
        if let Some(before) = &released.holder {
            let completed = bed.store().complete_upload("k", before).await;
            assert_eq!(completed.unwrap(), Kept::LeaseLost);
        }
        assert!(!foreign_claim(bed, "k").await);
        assert_eq!(claim(bed, &upload, holder).await, UploadClaim::Won);
        let entry = standing(bed, "k").await;
        assert_eq!(
            (entry.state(), entry.holder.as_ref()),
            (UploadState::Open, Some(holder))
        );
        if *holder == second {
            bed.store().complete_upload("k", holder).await.unwrap();
        }
    }
}

pub(crate) async fn other_bytes_under_the_same_key_are_a_collision_even_when_released(
    bed: &impl Testbed,
) {
    let (one, holder) = (upload("k"), holder(1, 1));
    let other = Upload {
        full_digest: "b2".repeat(32),
        ..one.clone()
    };
    assert_eq!(claim(bed, &one, &holder).await, UploadClaim::Won);
    let collision = |entry| UploadClaim::Collision(entry);
    for _ in 0..2 {
        let entry = standing(bed, "k").await;
        assert_eq!(claim(bed, &other, &holder).await, collision(entry));
        bed.store().complete_upload("k", &holder).await.unwrap();
    }
    let entry = bed.store().release_upload("k").await.unwrap().unwrap();
    assert_eq!(claim(bed, &other, &holder).await, collision(entry));
    assert_eq!(claim(bed, &one, &holder).await, UploadClaim::Won);
}

pub(crate) async fn of_many_jobs_that_want_one_upload_one_gets_it(bed: &impl Testbed) {
    let mut stores = Vec::new();
    for _ in 0..8 {
        stores.push(Arc::new(bed.another().await));
    }
    for round in 0..20 {
        let mut racers = JoinSet::new();
        for (job, store) in (1..).zip(&stores) {
            let store = Arc::clone(store);
            racers.spawn(async move {
                let upload = upload(&format!("k{round}"));
                store.claim_upload(&upload, &holder(job, 1)).await.unwrap()
            });
        }
        let answers = racers.join_all().await;
        let won = answers.iter().filter(|answer| **answer == UploadClaim::Won);
        assert_eq!(won.count(), 1, "{answers:?}");
        let held = |answer: &&UploadClaim| matches!(answer, UploadClaim::Held(_));
        assert_eq!(answers.iter().filter(held).count(), 7, "{answers:?}");
    }
}

pub(crate) async fn a_listing_of_uploads_goes_on_where_its_page_ended(bed: &impl Testbed) {
    let mut expected = BTreeSet::new();
    for number in 0..20_i64 {
        // Four share a second, and their order is not that of the keys.
        let (key, time) = (format!("k{number:02}"), 1_000 - number / 4);
        assert!(foreign_claim(bed, &key).await);
        let time_sql = bed.time(time);
        let sql =
            format!("UPDATE ingest_ledger SET claimed_at = {time_sql} WHERE upload_key = '{key}'");
        assert_eq!(bed.execute(&sql).await, 1);
        expected.insert((time, key));
    }
    for limit in [1, 3, 20, u32::MAX] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = bed
                .store()
                .uploads(Uncompleted::Foreign, limit, after.as_ref());
            let page = page.await.unwrap();
            assert!(page.entries.len() <= usize::try_from(limit).unwrap());
            let entries = page.entries.into_iter();
            seen.extend(entries.map(|entry| (entry.claimed_at.unwrap().0, entry.key)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert!(seen.iter().eq(&expected), "{limit}: {seen:?}");
    }
    let error = bed.store().uploads(Uncompleted::Foreign, 0, None).await;
    assert!(
        matches!(error, Err(StoreError::Invalid { .. })),
        "{error:?}"
    );
}

pub(crate) async fn a_holder_that_is_none_is_named_by_row_and_column(bed: &impl Testbed) {
    assert!(foreign_claim(bed, "k").await);
    let job = numbered_key(1);
    for (set, column) in [
        ("job_key = 'me'".to_owned(), "job_key"),
        (format!("job_key = '{job}', owner = 'me'"), "owner"),
        (
            format!("job_key = '{job}', owner = '{}', attempt = -1", Owner(1)),
            "attempt",
        ),
    ] {
        assert_eq!(
            bed.execute(&format!("UPDATE ingest_ledger SET {set}"))
                .await,
            1
        );
        let error = bed.store().upload("k").await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }), "{error:?}");
        let text = error.to_string();
        assert!(
            text.contains(&format!("upload k, column {column}: expected")),
            "{text}"
        );
    }
}
