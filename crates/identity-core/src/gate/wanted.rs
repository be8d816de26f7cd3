//! Whether an event's object is wanted: by its key, and as more than the picture of a folder.

use super::{Gate, NoJob};
use crate::{
    event::StorageEvent,
    identity::{ObjectAddress, Selected},
    object::ObjectError,
};

impl Gate {
    /// Why the contract does not want this object; `None` if it does. Where only the object's size tells a folder's from
    /// another, and the event does not tell it, the store is asked.
    pub(super) async fn unwanted(
        &self,
        event: &StorageEvent,
    ) -> Result<Option<NoJob>, ObjectError> {
        let address = &event.address;
        let select = self.contract().select();
        let key = address.key.display();
        let selected = select.judge(&key, event.details.size);
        if select.hangs_on_normal_form(&key) {
            tracing::warn!(
                uri = %address,
                selected = selected != Selected::No,
                "this key and a pattern of the contract differ in Unicode's normal form alone, and so are not the same"
            );
        }
        Ok(match selected {
            Selected::Yes => None,
            Selected::No => Some(NoJob::NotSelected),
            Selected::Folder => Some(NoJob::Folder),
            Selected::FolderIfEmpty => {
                let objects = &self.inner.parts.objects;
                // Who cannot be asked runs it: an empty job is better than a lost one.
                let head = match objects.reads(address.provider) {
                    true => objects.head(address).await?,
                    false => None,
                };
                head.filter(|head| head.size == 0).map(|_| NoJob::Folder)
            }
        })
    }

    /// Whether an object that is not whole, and of that many bytes, could become a job here.
    pub(super) fn wants(&self, address: &ObjectAddress, size: Option<u64>) -> bool {
        let selected = self.contract().select().judge(&address.key.display(), size);
        self.inner.parts.allow.allows(address)
            && matches!(selected, Selected::Yes | Selected::FolderIfEmpty)
    }
}
