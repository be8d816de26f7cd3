//! Deliveries that have an order: the messages of a FIFO queue, group by group.

use std::{collections::HashMap, hash::Hash, ops::Range, sync::Arc};

use futures_util::{StreamExt as _, stream};

use super::{Disposition, Gate, ItemAnswer};
use crate::event::Item;

impl Gate {
    /// [`Gate::settle_all`] for a queue that keeps an order within groups: the messages of a group are settled one after
    /// the other, and after one that must come again the rest of its group is returned untouched, so that none overtakes
    /// it. Groups are settled side by side, at most `concurrency` at a time. Answers come in the order of the messages.
    pub async fn settle_groups(&self, items: &[Item], concurrency: usize) -> Vec<ItemAnswer> {
        let mut start = 0;
        let messages = items.chunk_by(|a, b| Arc::ptr_eq(&a.origin, &b.origin));
        let groups = grouped(messages.enumerate().map(|(at, message)| {
            let first = message.first();
            let name = first.and_then(|item| item.origin.message_group_id.as_deref());
            let place = start..start + message.len();
            start = place.end;
            (name, (at, place))
        }));
        let mut answers: Vec<(usize, ItemAnswer)> = stream::iter(groups)
            .map(|group| self.settle_in_order(items, group))
            .buffer_unordered(concurrency.max(1))
            .collect::<Vec<_>>()
            .await
            .into_iter()
            .flatten()
            .collect();
        answers.sort_by_key(|(at, _)| *at);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// Settles the messages of a group: which they are, and where their items lie.
    async fn settle_in_order(
        &self,
        items: &[Item],
        group: Vec<(usize, Range<usize>)>,
    ) -> Vec<(usize, ItemAnswer)> {
        let mut answers: Vec<(usize, ItemAnswer)> = Vec::with_capacity(group.len());
        let mut blocked = false;
        for (at, place) in group {
            let message = &items[place];
            if !blocked {
                answers.extend(
                    self.settle_all(message, 1)
                        .await
                        .into_iter()
                        .map(|answer| (at, answer)),
                );
                blocked = answers
                    .last()
                    .is_some_and(|(_, answer)| answer.disposition != Disposition::Ack);
            } else if let Some(item) = message.first() {
                tracing::info!(
                    message_id = item.origin.message_id,
                    "returned: one before it in its group must come again"
                );
                let untouched = ItemAnswer {
                    origin: item.origin.clone(),
                    disposition: Disposition::Retry { not_before: None },
                    settled: Vec::new(),
                };
                answers.push((at, untouched));
            }
        }
        answers
    }
}

/// What has the same key together, in the order in which each key, and each of its own, came.
pub(super) fn grouped<K: Eq + Hash, T>(keyed: impl Iterator<Item = (K, T)>) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    let mut group_of = HashMap::new();
    for (key, one) in keyed {
        let group = *group_of.entry(key).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(one);
    }
    groups
}
