//! RSA with aws-lc (docs/decisions/0009-rsa-by-aws-lc.md).

use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, Pkcs1PrivateDecryptingKey,
    Pkcs1PublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};

/// A public key, which encrypts tokens for a server.
pub struct Public(PublicEncryptingKey);

impl Public {
    /// Parses a PEM file; `None` if it has no public key of 2048 to 8192 bits.
    pub fn from_pem(text: &[u8]) -> Option<Self> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(text).ok()?;
        PublicEncryptingKey::from_der(der.as_ref()).ok().map(Self)
    }

    /// Encrypts a token; `None` if it is too long for the key.
    pub fn encrypt(&self, plain: &[u8], pkcs1: bool) -> Option<Vec<u8>> {
        let (key, mut hidden) = (self.0.clone(), vec![0; self.0.key_size_bytes()]);
        let hidden = if pkcs1 {
            Pkcs1PublicEncryptingKey::new(key).ok()?.encrypt(plain, &mut hidden)
        } else {
            OaepPublicEncryptingKey::new(key).ok()?.encrypt(&OAEP_SHA1_MGF1SHA1, plain, &mut hidden, None)
        };
        hidden.ok().map(|hidden| hidden.to_vec())
    }
}

/// A private key, which decrypts the tokens of clients.
pub struct Private(PrivateDecryptingKey);

impl Private {
    /// Parses a PEM file; `None` if it has no private key of 2048 to 8192 bits (PKCS#8 or PKCS#1, not encrypted).
    pub fn from_pem(text: &[u8]) -> Option<Self> {
        let der = match PrivateKeyDer::from_pem_slice(text).ok()? {
            PrivateKeyDer::Pkcs8(der) => der.secret_pkcs8_der().to_vec(),
            PrivateKeyDer::Pkcs1(der) => pkcs8_of(der.secret_pkcs1_der()),
            _ => return None,
        };
        PrivateDecryptingKey::from_pkcs8(&der).ok().map(Self)
    }

    /// Decrypts a token; `None` if it is not for this key.
    pub fn decrypt(&self, hidden: &[u8], pkcs1: bool) -> Option<Vec<u8>> {
        let (key, mut plain) = (self.0.clone(), vec![0; self.0.key_size_bytes()]);
        let plain = if pkcs1 {
            Pkcs1PrivateDecryptingKey::new(key).ok()?.decrypt(hidden, &mut plain)
        } else {
            OaepPrivateDecryptingKey::new(key).ok()?.decrypt(&OAEP_SHA1_MGF1SHA1, hidden, &mut plain, None)
        };
        plain.ok().map(|plain| plain.to_vec())
    }
}

/// Wraps a PKCS#1 key in PKCS#8 (RFC 5208): version, algorithm rsaEncryption, key.
fn pkcs8_of(pkcs1: &[u8]) -> Vec<u8> {
    const VERSION_AND_ALGORITHM: [u8; 18] =
        [2, 1, 0, 0x30, 0x0D, 6, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1, 5, 0];
    let octets = der(0x04, pkcs1);
    der(0x30, &[&VERSION_AND_ALGORITHM[..], &octets].concat())
}

/// Encodes a DER value: tag, length, content.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    let length = content.len().to_be_bytes();
    if content.len() < 0x80 {
        bytes.push(content.len() as u8);
    } else {
        let digits = &length[length.iter().take_while(|&&b| b == 0).count()..];
        bytes.push(0x80 | digits.len() as u8);
        bytes.extend_from_slice(digits);
    }
    bytes.extend_from_slice(content);
    bytes
}
