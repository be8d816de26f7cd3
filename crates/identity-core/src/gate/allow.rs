//! The allow-list: which containers this process may be sent to by an event.

use std::collections::BTreeSet;

use crate::identity::ObjectAddress;

/// Which containers are allowed. An event is other people's text: it must not choose where credentials go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AllowList {
    /// Every container.
    #[default]
    Everything,
    /// The containers with these names: `bucket`, or `account/container` and `account/*` where there are accounts.
    Only(BTreeSet<String>),
}

impl AllowList {
    /// Reads names separated by commas; blanks around a name and empty names are dropped.
    pub fn parse(text: &str) -> Self {
        Self::Only(
            text.split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }

    /// Whether the object's container is on the list.
    pub fn allows(&self, address: &ObjectAddress) -> bool {
        let Self::Only(names) = self else { return true };
        match &address.account {
            // A container's name alone says nothing where every account may have one of that name.
            Some(account) => {
                let account = account.to_ascii_lowercase();
                let container = address.container.to_ascii_lowercase();
                names.contains(&format!("{account}/{container}"))
                    || names.contains(&format!("{account}/*"))
            }
            None => names.contains(&address.container),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{ObjectKey, Provider};

    fn address(account: Option<&str>, container: &str) -> ObjectAddress {
        let provider = if account.is_some() {
            Provider::Azure
        } else {
            Provider::S3
        };
        let (account, container) = (account.map(str::to_owned), container.to_owned());
        ObjectAddress {
            provider,
            account,
            container,
            key: ObjectKey::verbatim("a.shp"),
        }
    }

    #[test]
    fn a_bucket_is_allowed_by_its_exact_name() {
        let list = AllowList::parse(" geo-in, ,other");
        assert!(list.allows(&address(None, "geo-in")));
        assert!(!list.allows(&address(None, "geo-in2")));
        assert!(!AllowList::parse("").allows(&address(None, "geo-in")));
        assert!(AllowList::Everything.allows(&address(None, "geo-in")));
    }

    #[test]
    fn an_azure_container_is_allowed_only_with_its_account() {
        let list = AllowList::parse("acct/geo,all/*,geo");
        assert!(list.allows(&address(Some("Acct"), "geo")));
        assert!(list.allows(&address(Some("all"), "any")));
        assert!(!list.allows(&address(Some("evil"), "geo")));
    }
}
