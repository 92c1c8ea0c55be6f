// SPDX-License-Identifier: Apache-2.0
//
// A server's end of TLS sessions that stand and say nothing.
#include "Securing.h"

#include "CBench.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

struct bench_identity {
    SSL_CTX *context;
};

static bool add(X509 *certificate, int kind, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    if (extension == NULL) return false;
    bool did = X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return did;
}

static bool fill(X509 *certificate, EVP_PKEY *key, const char *address) {
    char names[64];
    snprintf(names, sizeof names, "IP:%s", address);
    X509_NAME *name = X509_get_subject_name(certificate);
    return X509_set_version(certificate, 2) == 1 && ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) != NULL &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), 86400) != NULL &&
           X509_set_pubkey(certificate, key) == 1 &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)address, -1, -1, 0) == 1 &&
           X509_set_issuer_name(certificate, name) == 1 && add(certificate, NID_basic_constraints, "CA:FALSE") &&
           add(certificate, NID_subject_alt_name, names) && X509_sign(certificate, key, EVP_sha256()) > 0;
}

static bool save(X509 *certificate, const char *path) {
    FILE *file = fopen(path, "we");
    if (file == NULL) return false;
    bool did = PEM_write_X509(file, certificate) == 1;
    return fclose(file) == 0 && did;
}

struct bench_identity *bench_make_identity(const char *address, const char *path) {
    struct bench_identity *identity = malloc(sizeof *identity);
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    bool did = identity != NULL && key != NULL && certificate != NULL && context != NULL &&
               fill(certificate, key, address) && save(certificate, path) &&
               SSL_CTX_use_certificate(context, certificate) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1;
    X509_free(certificate);
    EVP_PKEY_free(key);
    if (did) {
        SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
        identity->context = context;
        return identity;
    }
    SSL_CTX_free(context);
    free(identity);
    return NULL;
}

struct ssl_st *bench_session(int descriptor, struct bench_identity *identity) {
    // A client that says nothing keeps the others waiting no longer than this.
    struct timeval patience = {.tv_sec = 5};
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    SSL *session = SSL_new(identity->context);
    if (session != NULL && SSL_set_fd(session, descriptor) == 1 && SSL_accept(session) == 1) return session;
    SSL_free(session);
    return NULL;
}

bool bench_secure(int descriptor, struct bench_identity *identity) { return bench_session(descriptor, identity) != NULL; }
