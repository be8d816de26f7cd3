//! Messages that are worth another delivery only later: each stays hidden for as long as somebody else's lease, or the pause
//! after a failure, lasts, instead of coming again too early or late.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use identity_core::{
    claim::UnixMillis,
    event::Origin,
    gate::{Disposition, ItemAnswer},
    text::error_chain,
};
use provider_aws::{LONGEST_HIDDEN as MOST, SqsClient};

/// How long a held message is hidden at least, so that a lease that has just ended is not asked about in a loop.
const LEAST: Duration = Duration::from_secs(1);

/// Hides every message whose job somebody else holds until that lease ends, and whose job failed until its pause does. A message for which that fails comes again when
/// its queue has it in mind anyway, so a failure is only told.
pub(crate) async fn hide_held(
    client: &SqsClient,
    answers: &[ItemAnswer],
    now: UnixMillis,
    concurrency: usize,
) {
    stream::iter(answers.iter().filter_map(|answer| held(answer, now)))
        .for_each_concurrent(concurrency, async |held| {
            let Held {
                queue_url,
                receipt,
                hidden,
            } = &held;
            if let Err(error) =
                provider_aws::change_visibility(client, queue_url, receipt, *hidden).await
            {
                tracing::warn!(
                    error = error_chain(&error),
                    "the visibility of a held message was not changed"
                );
            }
        })
        .await;
}

/// A message to hide.
#[derive(Debug, PartialEq, Eq)]
struct Held<'a> {
    queue_url: String,
    receipt: &'a str,
    hidden: Duration,
}

fn held(answer: &ItemAnswer, now: UnixMillis) -> Option<Held<'_>> {
    let Disposition::Retry {
        not_before: Some(until),
    } = answer.disposition
    else {
        return None;
    };
    let Origin {
        receipt_handle,
        queue_arn,
        ..
    } = &*answer.origin;
    let left = u64::try_from(until.0.saturating_sub(now.0)).unwrap_or(0);
    Some(Held {
        queue_url: queue_url(queue_arn.as_deref()?)?,
        receipt: receipt_handle.as_deref()?,
        hidden: Duration::from_millis(left).clamp(LEAST, MOST),
    })
}

/// The URL of a queue from its ARN, which is all that a function is told:
/// `arn:PARTITION:sqs:REGION:ACCOUNT:NAME`. <https://docs.aws.amazon.com/general/latest/gr/sqs-service.html>
fn queue_url(arn: &str) -> Option<String> {
    let mut parts = arn.splitn(6, ':');
    let mut next = || parts.next().filter(|part| !part.is_empty());
    let ("arn", partition, "sqs", region, account, name) =
        (next()?, next()?, next()?, next()?, next()?, next()?)
    else {
        return None;
    };
    let domain = match partition {
        "aws-cn" => "amazonaws.com.cn",
        _ => "amazonaws.com",
    };
    Some(format!("https://sqs.{region}.{domain}/{account}/{name}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_767_323_045_000);

    fn answer(disposition: Disposition) -> ItemAnswer {
        let origin = Origin {
            receipt_handle: Some("receipt".to_owned()),
            queue_arn: Some("arn:aws:sqs:eu-central-1:123456789012:events".to_owned()),
            ..Origin::default()
        };
        ItemAnswer {
            origin: Arc::new(origin),
            disposition,
            settled: Vec::new(),
        }
    }

    fn hidden(until: i64) -> Duration {
        let not_before = Some(UnixMillis(until));
        held(&answer(Disposition::Retry { not_before }), NOW)
            .unwrap()
            .hidden
    }

    #[test]
    fn a_held_message_is_hidden_until_the_lease_ends() {
        assert_eq!(hidden(NOW.0 + 90_500), Duration::from_millis(90_500));
        assert_eq!(hidden(NOW.0), LEAST);
        assert_eq!(hidden(i64::MIN), LEAST);
        assert_eq!(hidden(i64::MAX), MOST);
    }

    #[test]
    fn only_what_is_held_is_hidden() {
        for disposition in [Disposition::Ack, Disposition::Retry { not_before: None }] {
            assert_eq!(held(&answer(disposition), NOW), None);
        }
    }

    #[test]
    fn a_queue_is_known_by_its_arn() {
        let url = |arn| queue_url(arn);
        assert_eq!(
            url("arn:aws:sqs:eu-central-1:123456789012:events.fifo").as_deref(),
            Some("https://sqs.eu-central-1.amazonaws.com/123456789012/events.fifo")
        );
        assert_eq!(
            url("arn:aws-cn:sqs:cn-north-1:123456789012:events").as_deref(),
            Some("https://sqs.cn-north-1.amazonaws.com.cn/123456789012/events")
        );
        for other in [
            "",
            "arn:aws:s3:::geo-in",
            "arn:aws:sqs:eu-central-1::events",
            "events",
        ] {
            assert_eq!(url(other), None, "{other}");
        }
    }
}
