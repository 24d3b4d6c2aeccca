//! Certificates of the servers, signed by one of the organisation.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use super::EnrolError;

/// Certificates and keys, as PEM.
pub(super) struct Certificates {
    /// The certificate of the organisation.
    pub(super) organisation: String,
    /// The certificate of all servers, with the names of all of them.
    pub(super) server: String,
    /// The key of the servers.
    pub(super) server_key: String,
}

impl Certificates {
    /// Creates certificates for servers with these host names or addresses. The organisation's key is not kept: new servers need new certificates.
    pub(super) fn create(hosts: &[String]) -> Result<Self, EnrolError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "Amplifier fleet");
        let key = KeyPair::generate()?;
        let organisation = params.self_signed(&key)?.pem();
        let issuer = Issuer::new(params, key);
        let mut params = CertificateParams::new(hosts.to_vec())?;
        params.distinguished_name.push(DnType::CommonName, "Amplifier fleet server");
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let server = params.signed_by(&key, &issuer)?.pem();
        Ok(Self { organisation, server, server_key: key.serialize_pem() })
    }
}
