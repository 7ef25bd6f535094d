#include "harness/certificates.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <utility>

namespace leaf::harness {
namespace {

const std::string kNewKey = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ";
const std::string kHere = "DNS:localhost,IP:127.0.0.1";

}  // namespace

Certificates::Certificates(std::string folder) : folder_(std::move(folder)) {
  MakeAuthority("ca");
  MakeAuthority("other");
  Make("good", "ca", kHere);
  Make("by-name", "ca", "DNS:localhost");
  Make("wrong", "ca", "DNS:db.example.com");
  Make("foreign", "other", kHere);
  Make("expired", "ca", kHere, "-startdate 20200101000000Z -enddate 20210101000000Z");
  Run("openssl req -x509 " + kNewKey + "self.key -out self.pem -days 30 -subj /CN=localhost " +
      "-addext subjectAltName=" + kHere);
}

void Certificates::Run(const std::string& command) {
  const std::string all = "cd '" + folder_ + "' && ( " + command + " ) >>openssl.log 2>&1";
  EXPECT_EQ(std::system(all.c_str()), 0) << command;
}

void Certificates::MakeAuthority(const std::string& name) {
  Run("openssl req -x509 " + kNewKey + name + ".key -out " + name +
      ".pem -days 30 -subj /CN=authority-" + name + " && mkdir " + name + ".issued && : >" + name +
      ".index && echo 01 >" + name + ".serial");
}

// `openssl ca` is the one command of Debian 12's openssl that takes dates in the past.
void Certificates::Make(const std::string& name, const std::string& authority,
                        const std::string& names, const std::string& dates) {
  std::ofstream config(folder_ + "/" + name + ".cnf");
  config << "[ca]\ndefault_ca=a\n[a]\ndatabase=" << authority << ".index\nserial=" << authority
         << ".serial\nnew_certs_dir=" << authority
         << ".issued\nunique_subject=no\ndefault_md=sha256\ndefault_days=30\npolicy=p\n"
         << "x509_extensions=x\n[p]\ncommonName=supplied\n[x]\nsubjectAltName=" << names << "\n";
  config.close();
  Run("openssl req " + kNewKey + name + ".key -out " + name + ".csr -subj /CN=" + name +
      " && openssl ca -batch -notext -config " + name + ".cnf -cert " + authority +
      ".pem -keyfile " + authority + ".key -in " + name + ".csr -out " + name + ".pem " + dates);
}

}  // namespace leaf::harness
