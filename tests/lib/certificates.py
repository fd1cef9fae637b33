"""Certificates for tests, made by the openssl command: a CA, a server's, clients', some that are not to be trusted."""
import os
import subprocess

import require


class Authority:
    """A CA in a folder of its own; everything it makes lies there."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = folder, name
        os.makedirs(folder, exist_ok=True)
        self.ca = os.path.join(folder, name + ".pem")
        self.key = os.path.join(folder, name + ".key")
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.key,
                      "-out", self.ca, "-days", "30", "-subj", "/CN=photond test " + name,
                      "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        with open(os.path.join(folder, name + ".index"), "w"):
            pass

    def _openssl(self, *arguments):
        done = subprocess.run([require.program("openssl"), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        assert done.returncode == 0, done.stdout

    def make(self, name, usage, days=30, names="DNS:localhost,IP:127.0.0.1,IP:::1"):
        """(certificate, key) of a server or a client; days=0: one that is over already."""
        base = os.path.join(self.folder, name)
        self._openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", base + ".key",
                      "-out", base + ".csr", "-subj", "/CN=" + name)
        with open(base + ".ext", "w") as f:
            f.write("basicConstraints=CA:FALSE\nextendedKeyUsage=%s\nsubjectAltName=%s\n" % (usage, names))
        self._openssl("x509", "-req", "-in", base + ".csr", "-CA", self.ca, "-CAkey", self.key, "-CAcreateserial",
                      "-days", str(days), "-extfile", base + ".ext", "-out", base + ".pem")
        return base + ".pem", base + ".key"

    def server(self, name="server", **options):
        return self.make(name, "serverAuth", **options)

    def client(self, name="client", **options):
        return self.make(name, "clientAuth", **options)

    def revoked(self, *certificates):
        """A file with the list of those that are no longer good."""
        path = os.path.join(self.folder, self.name + ".crl")
        conf = os.path.join(self.folder, self.name + ".cnf")
        with open(conf, "w") as f:
            f.write("[ca]\ndefault_ca=it\n[it]\ndatabase=%s\ndefault_md=sha256\ndefault_crl_days=30\n" %
                    os.path.join(self.folder, self.name + ".index"))
        for certificate in certificates:
            self._openssl("ca", "-config", conf, "-cert", self.ca, "-keyfile", self.key, "-revoke", certificate)
        self._openssl("ca", "-config", conf, "-cert", self.ca, "-keyfile", self.key, "-gencrl", "-out", path)
        return path
