import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const NEW_KEY = '-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'.split(' ');

/** An authority for tests with certificates for a server and a client, made by the system's openssl. */
export class TestCertificates {
  private readonly folder = mkdtempSync(join(tmpdir(), 'mongo-tls-'));

  constructor() {
    const files = ['-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2'];
    this.openssl('req', '-x509', ...NEW_KEY, '-subj', '/CN=authority', ...files);
    this.issue('server', 'subjectAltName=DNS:localhost,IP:127.0.0.1');
    this.issue('client', 'subjectAltName=DNS:client');
    // For drivers: certificate and key of a client in one file.
    writeFileSync(this.path('client-both.pem'), this.text('client.pem') + this.text('client.key'));
  }

  /** A file of this folder: `ca.pem`, `server.pem`, `server.key`, `client-both.pem` and those of `issue`. */
  path(name: string): string {
    return join(this.folder, name);
  }

  text(name: string): string {
    return readFileSync(this.path(name), 'utf8');
  }

  /** Makes `NAME.pem` and `NAME.key`. @param names as openssl writes them: `subjectAltName=DNS:localhost` */
  issue(name: string, names: string): void {
    writeFileSync(this.path('names'), names);
    this.openssl('req', ...NEW_KEY, '-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.csr`);
    const authority = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial'];
    const files = ['-in', `${name}.csr`, '-out', `${name}.pem`, '-days', '2', '-extfile', 'names'];
    this.openssl('x509', '-req', ...authority, ...files);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private openssl(...args: string[]): void {
    execFileSync('openssl', args, { cwd: this.folder, stdio: 'ignore' });
  }
}
