//! The names that clients ask for, by popularity.

use dnslab_wire::rtype;

use crate::draw::{About, unit};
use crate::label::syllables;
use crate::model::Internet;
use crate::name::{Name, push_label_with, push_number};
use crate::service::SERVICES;

/// Suffixes below no top-level domain that clients of homes and offices ask for. The root servers get more
/// such queries than any others.
const STRAY: [&str; 8] =
    ["local", "lan", "home", "internal", "localdomain", "corp", "intranet", "dhcp"];

impl Internet {
    /// The `i`-th popular name, from 0 on. A share of them (`names.absent`) does not exist.
    ///
    /// The names of one domain follow each other: the domain itself, `www`, and further hosts. There are
    /// `domains * names.per_domain` of them; then they begin again. Names that do not exist never do.
    #[must_use]
    pub fn name(&self, i: u64) -> Name {
        if self.is_absent(i) {
            return self.absent_name(i);
        }
        let names = &self.description.names;
        let domain = i / names.per_domain.0 % self.description.domains.0;
        let mut octets = Vec::with_capacity(64);
        self.push_host(domain, i % names.per_domain.0, &mut octets);
        Name::from_wire(&octets)
    }

    /// How many popular names there are.
    #[must_use]
    pub fn name_count(&self) -> u64 {
        self.description.domains.0.saturating_mul(self.description.names.per_domain.0)
    }

    /// The name of this popularity, from 0 on, that clients ask for with this type: of those that exist alone. Of
    /// types that domains have it is a domain, with SRV a service, with PTR an address. It need not have records
    /// of the type.
    #[must_use]
    pub fn existing_name(&self, rank: u64, rtype: u16) -> Name {
        let per_domain = self.description.names.per_domain.0;
        let domain = rank / per_domain % self.description.domains.0;
        let mut octets = Vec::with_capacity(64);
        match rtype {
            rtype::PTR => octets = self.asked_address(rank, true),
            rtype::SRV if self.has_services(domain) => {
                let (service, _) = SERVICES[(rank % SERVICES.len() as u64) as usize];
                for label in [service, "_tcp"] {
                    push_label_with(&mut octets, |octets| {
                        octets.extend_from_slice(label.as_bytes())
                    });
                }
                self.push_domain(domain, &mut octets);
            }
            rtype::NS | rtype::SOA | rtype::DS => self.push_domain(domain, &mut octets),
            rtype::SRV | rtype::MX | rtype::TXT | rtype::CAA | rtype::DNSKEY => {
                self.push_domain(domain, &mut octets);
            }
            _ => self.push_host(domain, rank % per_domain, &mut octets),
        }
        Name::from_wire(&octets)
    }

    /// The name with this number, from 0 on, that clients ask for with this type: of those that do not exist. They
    /// are below domains, would be domains, or are below no top-level domain, as the file says.
    #[must_use]
    pub fn missing_name(&self, number: u64, rtype: u16) -> Name {
        match rtype {
            rtype::PTR => Name::from_wire(&self.asked_address(number, false)),
            _ => self.absent_name(number),
        }
    }

    /// A name with a random label, which nobody else asks for. It does not exist. It is below the domain of an
    /// operator, as the names of trackers and of content delivery are.
    #[must_use]
    pub fn random_name(&self, number: u64) -> Name {
        let mut octets = Vec::with_capacity(64);
        push_label_with(&mut octets, |octets| {
            octets.extend_from_slice(format!("{number:016x}").as_bytes());
        });
        let operator = self.draw_operator(self.draws.word(About::RandomParent, number));
        self.push_domain(self.domain_of(operator), &mut octets);
        Name::from_wire(&octets)
    }

    /// True if the `i`-th popular name exists.
    #[must_use]
    pub fn exists(&self, i: u64) -> bool {
        !self.is_absent(i)
    }

    fn absent_name(&self, i: u64) -> Name {
        let names = &self.description.names;
        let kind = unit(self.draws.word(About::AbsentKind, i));
        let word = self.draws.word(About::AbsentSuffix, i);
        let mut octets = Vec::with_capacity(64);
        if kind < names.absent_hosts.0 {
            // No host has a digit.
            push_label_with(&mut octets, |octets| {
                octets.push(b'x');
                push_number(octets, i);
            });
            self.push_domain(i / names.per_domain.0 % self.description.domains.0, &mut octets);
        } else if kind < names.absent_hosts.0 + names.absent_top_level.0 {
            push_label_with(&mut octets, |octets| {
                syllables(word, 3, octets);
                push_number(octets, i);
            });
            let mut suffixes = STRAY.iter().cycle().skip((word >> 32) as usize % STRAY.len());
            // A file may have one of them as a top-level domain.
            let free = suffixes.by_ref().take(STRAY.len());
            let suffix =
                free.into_iter().find(|suffix| self.top_level(suffix.as_bytes()).is_none());
            let suffix = suffix.unwrap_or(&"nowhere-0").as_bytes();
            push_label_with(&mut octets, |octets| octets.extend_from_slice(suffix));
            octets.push(0);
        } else {
            // Numbers from the last domain on have none.
            let (first, count) = (self.domain_count(), self.labels.count());
            let domain = first + i % (count - first);
            push_label_with(&mut octets, |octets| octets.extend_from_slice(b"www"));
            self.push_domain(domain, &mut octets);
        }
        Name::from_wire(&octets)
    }
}
