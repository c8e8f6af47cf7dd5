import { describe, expect, it } from 'vitest';
import { holdsSecret } from './init.js';

describe('a URI that is written into a file', () => {
  it.each([
    ['mongodb://someone:secret@host/shop', true],
    ['mongodb://someone@host/shop', true],
    ['mongodb+srv://a%40b:c@cluster.example/shop?retryWrites=true', true],
    ['mongodb://host/shop?tlsCertificateKeyFilePassword=x', true],
    ['mongodb://host/shop?authMechanismProperties=AWS_SESSION_TOKEN:x', true],
    ['mongodb://a,b:27018/shop?replicaSet=rs0', false],
    ['mongodb://%2Ftmp%2Fx.sock/shop', false],
  ])('%s holds a secret: %s', (uri, held) => {
    expect(holdsSecret(uri)).toBe(held);
  });
});
