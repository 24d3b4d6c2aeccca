// A push service for tests: it checks what RFC 8030 and 8292 require of a sender, and decrypts with a package from elsewhere, as a browser does.

import assert from 'node:assert/strict';
import { createECDH, createPublicKey, randomBytes, verify } from 'node:crypto';
import { createServer } from 'node:http';
import ece from 'http_ece';
import { until } from './waits.mjs';

/** The keys of a browser's subscription. */
export function subscriberKeys() {
  const pair = createECDH('prime256v1');
  pair.generateKeys();
  return { pair, p256dh: pair.getPublicKey('base64url'), auth: randomBytes(16).toString('base64url') };
}

/** Checks the token of a sender, and gives its claims. */
function claimsOf(authorization, audience) {
  const [, token, key] = /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(authorization);
  const [header, claims, signature] = token.split('.');
  const point = Buffer.from(key, 'base64url');
  assert.deepEqual([point.length, point[0]], [65, 4]);
  const jwk = { kty: 'EC', crv: 'P-256', x: point.subarray(1, 33).toString('base64url'), y: point.subarray(33).toString('base64url') };
  const isValid = verify('sha256', Buffer.from(`${header}.${claims}`), { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'));
  assert.ok(isValid, 'the token is signed with the key');
  const read = (part) => JSON.parse(Buffer.from(part, 'base64url').toString());
  assert.deepEqual(read(header), { typ: 'JWT', alg: 'ES256' });
  const { aud, exp } = read(claims);
  assert.equal(aud, audience);
  const seconds = exp - Date.now() / 1_000;
  assert.ok(seconds > 0 && seconds <= 24 * 3_600, `${seconds} s`);
  return { key, claims: read(claims) };
}

export class PushService {
  /** @type {{topic: string, ttl: number, size: number, key: string, claims: object, message: any}[]} */
  received = [];
  #problems = [];
  #taken = 0;

  static async start(keys) {
    const service = new PushService();
    service.#server = createServer((request, response) => {
      const parts = [];
      request.on('data', (part) => parts.push(part)).on('end', () => {
        try {
          service.#take(request, Buffer.concat(parts), keys);
          response.writeHead(201).end();
        } catch (error) {
          service.#problems.push(error);
          response.writeHead(400).end();
        }
      });
    });
    await new Promise((resolve) => service.#server.listen(0, '127.0.0.1', resolve));
    service.url = `http://127.0.0.1:${service.#server.address().port}`;
    service.endpoint = `${service.url}/device/1`;
    return service;
  }

  #server;

  #take({ method, url, headers }, body, { pair, auth }) {
    assert.deepEqual([method, url, headers['content-encoding'], headers.urgency], ['POST', '/device/1', 'aes128gcm', 'high']);
    assert.match(headers.topic, /^[\w-]{1,32}$/);
    assert.match(headers.ttl, /^\d+$/);
    assert.ok(body.length <= 4_096);
    const { key, claims } = claimsOf(headers.authorization, this.url);
    const message = JSON.parse(ece.decrypt(body, { version: 'aes128gcm', privateKey: pair, authSecret: auth }).toString());
    this.received.push({ topic: headers.topic, ttl: Number(headers.ttl), size: body.length, key, claims, message });
  }

  /** The next message. */
  async next() {
    await until(() => this.received.length > this.#taken || this.#problems.length > 0, () => 'a push message');
    assert.deepEqual(this.#problems, []);
    return this.received[(this.#taken += 1) - 1];
  }

  stop() {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
