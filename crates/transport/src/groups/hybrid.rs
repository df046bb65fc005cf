//! X25519MLKEM768: ML-KEM-768 (FIPS 203) and X25519 side by side, so that the secret is safe as long as
//! one of them is (draft-ietf-tls-ecdhe-mlkem, section 4; draft-ietf-tls-hybrid-design). ring has no
//! ML-KEM, so that half is RustCrypto's.

use ml_kem::kem::{Decapsulate as _, KeyExport as _};
use ml_kem::{B32, DecapsulationKey, EncapsulationKey, MlKem768, Seed};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::crypto::ring::kx_group::X25519;
use rustls::crypto::{
    ActiveKeyExchange, CompletedKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup,
};
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

/// Octets of an encapsulation key of ML-KEM-768 (FIPS 203, section 8): the client's part.
const ENCAPSULATION_KEY: usize = 1_184;
/// Octets of a ciphertext of ML-KEM-768: the server's part.
const CIPHERTEXT: usize = 1_088;

const INVALID: Error = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);

/// Shares and secrets of ML-KEM come first, those of X25519 after them.
#[derive(Debug)]
pub(super) struct X25519MlKem768;

impl SupportedKxGroup for X25519MlKem768 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let classical = X25519.start()?;
        let mut seed = Seed::default();
        fill(&mut seed)?;
        let decapsulation = Box::new(DecapsulationKey::<MlKem768>::from_seed(seed));
        let key = decapsulation.encapsulation_key().to_bytes();
        let share = [key.as_slice(), classical.pub_key()].concat();
        Ok(Box::new(Started { classical, decapsulation, share }))
    }

    fn start_and_complete(&self, share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (key, classical) = share.split_at_checked(ENCAPSULATION_KEY).ok_or(INVALID)?;
        let classical = X25519.start_and_complete(classical)?;
        let key = key.try_into().map_err(|_| INVALID)?;
        let key = EncapsulationKey::<MlKem768>::new(&key).map_err(|_| INVALID)?;
        let mut message = B32::default();
        fill(&mut message)?;
        let (ciphertext, secret) = key.encapsulate_deterministic(&message);
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: [ciphertext.as_slice(), &classical.pub_key].concat(),
            secret: join(&secret, &classical.secret),
        })
    }

    fn ffdhe_group(&self) -> Option<rustls::ffdhe_groups::FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

/// A client's key exchange that waits for the server's share.
struct Started {
    classical: Box<dyn ActiveKeyExchange>,
    decapsulation: Box<DecapsulationKey<MlKem768>>,
    share: Vec<u8>,
}

impl ActiveKeyExchange for Started {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        let (ciphertext, classical) = share.split_at_checked(CIPHERTEXT).ok_or(INVALID)?;
        let classical = self.classical.complete(classical)?;
        let ciphertext = ciphertext.try_into().map_err(|_| INVALID)?;
        Ok(join(&self.decapsulation.decapsulate(&ciphertext), &classical))
    }

    /// A server without ML-KEM may take the X25519 half alone, if X25519 is offered too.
    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.classical.group(), self.classical.pub_key()))
    }

    fn complete_hybrid_component(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        self.classical.complete(share)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn ffdhe_group(&self) -> Option<rustls::ffdhe_groups::FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

fn join(post_quantum: &[u8], classical: &SharedSecret) -> SharedSecret {
    SharedSecret::from([post_quantum, classical.secret_bytes()].concat())
}

fn fill(octets: &mut [u8]) -> Result<(), Error> {
    SystemRandom::new().fill(octets).map_err(|_| GetRandomFailed.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of draft-ietf-tls-ecdhe-mlkem, section 4.1 and 4.2, and one secret of 64 octets.
    #[test]
    fn both_sides_come_to_one_secret() {
        let client = X25519MlKem768.start().unwrap();
        assert_eq!(client.pub_key().len(), 1_216);
        let server = X25519MlKem768.start_and_complete(client.pub_key()).unwrap();
        assert_eq!(server.pub_key.len(), 1_120);
        assert_eq!(server.secret.secret_bytes().len(), 64);
        let secret = client.complete(&server.pub_key).unwrap();
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
    }

    #[test]
    fn a_server_may_take_the_classical_half() {
        let client = X25519MlKem768.start().unwrap();
        let (group, share) = client.hybrid_component().unwrap();
        assert_eq!(group, NamedGroup::X25519);
        let server = X25519.start_and_complete(share).unwrap();
        let secret = client.complete_hybrid_component(&server.pub_key).unwrap();
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
    }

    #[test]
    fn shares_of_another_size_are_refused() {
        let share = X25519MlKem768.start().unwrap().pub_key().to_vec();
        for length in [0, 32, ENCAPSULATION_KEY, share.len() - 1] {
            assert!(X25519MlKem768.start_and_complete(&share[..length]).is_err(), "{length}");
        }
        let mut above_modulus = share.clone();
        above_modulus[..3].fill(0xff);
        assert!(X25519MlKem768.start_and_complete(&above_modulus).is_err());
        for length in [0, CIPHERTEXT, CIPHERTEXT + 31] {
            let client = X25519MlKem768.start().unwrap();
            assert!(client.complete(&vec![0; length]).is_err(), "{length}");
        }
    }
}
