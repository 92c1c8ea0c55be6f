// SPDX-License-Identifier: Apache-2.0
//
// OpenSSL 3, and what of it is a macro that Swift cannot import.
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

static inline void copenssl_set_modes(SSL_CTX *context, long modes) { SSL_CTX_set_mode(context, modes); }

static inline int copenssl_set_minimum_version(SSL_CTX *context, int version) {
    return SSL_CTX_set_min_proto_version(context, version);
}

static inline int copenssl_set_maximum_version(SSL_CTX *context, int version) {
    return SSL_CTX_set_max_proto_version(context, version);
}

static inline void copenssl_set_session_cache(SSL_CTX *context, long mode) {
    SSL_CTX_set_session_cache_mode(context, mode);
}

// SSL_OP_NO_RENEGOTIATION and SSL_OP_NO_COMPRESSION: the shifts behind their names are a function-like macro.
static inline void copenssl_refuse_renegotiation_and_compression(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}

static inline void copenssl_set_max_certificate_list(SSL_CTX *context, long bytes) {
    SSL_CTX_set_max_cert_list(context, bytes);
}

static const int copenssl_public_key = EVP_PKEY_PUBLIC_KEY;
static const int copenssl_key_pair = EVP_PKEY_KEYPAIR;

// The kinds of what a security callback is asked about; their names are made of shifts.
static const int copenssl_security_other_type = SSL_SECOP_OTHER_TYPE;
static const int copenssl_security_cipher = SSL_SECOP_OTHER_CIPHER;
static const int copenssl_security_group = SSL_SECOP_OTHER_CURVE;
static const int copenssl_security_dh = SSL_SECOP_OTHER_DH;

// Adds a certificate of the chain that goes with the client's own; takes no reference away from the caller.
static inline int copenssl_add_chain_certificate(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

static inline int copenssl_set_server_name(SSL *session, const char *name) {
    return (int)SSL_set_tlsext_host_name(session, name);
}

static inline const char *copenssl_cipher_name(const SSL *session) { return SSL_get_cipher_name(session); }
