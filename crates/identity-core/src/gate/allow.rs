//! The allow-list: which containers this process may be sent to by an event.

use crate::identity::{ObjectAddress, Provider};

/// Which containers are allowed. An event is other people's text: it must not choose where credentials go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AllowList {
    /// Every container.
    #[default]
    Everything,
    /// These.
    Only(Vec<Allowed>),
}

/// A container, or all of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// Whose; none for any cloud's. A folder of this machine is allowed only as `file:`.
    provider: Option<Provider>,
    /// `bucket`, or `account/container` and `account/*` where there are accounts.
    name: String,
}

/// A name whose provider is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("what stands before the colon of {got:?} is none of s3, gcs, azure and file")]
pub struct UnknownProvider {
    /// The name.
    pub got: String,
}

impl AllowList {
    /// Reads names separated by commas, each after its provider and a colon (`s3:bucket`, `azure:account/container`) or without;
    /// blanks around a name and empty names are dropped.
    ///
    /// # Errors
    ///
    /// [`UnknownProvider`].
    pub fn parse(text: &str) -> Result<Self, UnknownProvider> {
        let names = text.split(',').map(str::trim);
        names
            .filter(|name| !name.is_empty())
            .map(Allowed::parse)
            .collect::<Result<_, _>>()
            .map(Self::Only)
    }

    /// Whether the object's container is on the list.
    pub fn allows(&self, address: &ObjectAddress) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(allowed) => allowed.iter().any(|allowed| allowed.allows(address)),
        }
    }

    /// The first container of this provider that the list names, with its account where there are accounts.
    pub fn first_of(&self, provider: Provider) -> Option<(Option<&str>, &str)> {
        let Self::Only(allowed) = self else {
            return None;
        };
        allowed
            .iter()
            .filter(|allowed| allowed.is_of(provider))
            .find_map(|allowed| match (provider, allowed.name.split_once('/')) {
                (Provider::Azure, Some((_, "*")) | None) => None,
                (Provider::Azure, Some((account, container))) => Some((Some(account), container)),
                (_, Some(_)) => None,
                (_, None) => Some((None, allowed.name.as_str())),
            })
    }
}

impl Allowed {
    fn parse(name: &str) -> Result<Self, UnknownProvider> {
        let (provider, name) = match name.split_once(':') {
            None => (None, name),
            Some((before, name)) => match Provider::from_name(before) {
                Some(provider) => (Some(provider), name),
                None => {
                    return Err(UnknownProvider {
                        got: format!("{before}:{name}"),
                    });
                }
            },
        };
        Ok(Self {
            provider,
            name: name.to_owned(),
        })
    }

    fn is_of(&self, provider: Provider) -> bool {
        match self.provider {
            Some(own) => own == provider,
            None => provider != Provider::File,
        }
    }

    fn allows(&self, address: &ObjectAddress) -> bool {
        self.is_of(address.provider)
            && match &address.account {
                // A container's name alone says nothing where every account may have one of that name.
                Some(account) => self.name.split_once('/').is_some_and(|(own, container)| {
                    own == account.to_ascii_lowercase()
                        && (container == "*" || container == address.container.to_ascii_lowercase())
                }),
                None => self.name == address.container,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{ObjectKey, Provider};

    fn list_of(text: &str) -> AllowList {
        AllowList::parse(text).unwrap()
    }

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
        let list = list_of(" geo-in, ,other");
        assert!(list.allows(&address(None, "geo-in")));
        assert!(!list.allows(&address(None, "geo-in2")));
        assert!(!list_of("").allows(&address(None, "geo-in")));
        assert!(AllowList::Everything.allows(&address(None, "geo-in")));
    }

    #[test]
    fn an_azure_container_is_allowed_only_with_its_account() {
        let list = list_of("acct/geo,all/*,geo");
        assert!(list.allows(&address(Some("Acct"), "geo")));
        assert!(list.allows(&address(Some("all"), "any")));
        assert!(!list.allows(&address(Some("evil"), "geo")));
    }

    #[test]
    fn a_name_means_its_provider() {
        let of = |provider| ObjectAddress {
            provider,
            ..address(None, "geo")
        };
        let allowed = |text: &str| {
            Provider::ALL
                .into_iter()
                .filter(|provider| list_of(text).allows(&of(*provider)))
                .collect::<Vec<_>>()
        };
        assert_eq!(allowed("s3:geo"), [Provider::S3]);
        assert_eq!(
            allowed("gcs:geo, file:geo"),
            [Provider::Gcs, Provider::File]
        );
        assert!(!allowed("geo").contains(&Provider::File));
        assert!(list_of("azure:acct/geo").allows(&address(Some("acct"), "geo")));
        assert!(!list_of("s3:acct/geo").allows(&address(Some("acct"), "geo")));
        let error = AllowList::parse("a,gs:geo").unwrap_err();
        assert_eq!(error.got, "gs:geo");
    }

    #[test]
    fn the_first_container_is_one_of_the_provider() {
        let list = list_of("azure:a/*,geo,azure:a/b,s3:other,file:inbox");
        assert_eq!(list.first_of(Provider::S3), Some((None, "geo")));
        assert_eq!(list.first_of(Provider::Azure), Some((Some("a"), "b")));
        assert_eq!(list.first_of(Provider::File), Some((None, "inbox")));
        assert_eq!(AllowList::Everything.first_of(Provider::S3), None);
    }
}
