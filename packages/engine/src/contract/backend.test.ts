import { expect, it } from 'vitest';
import { Secret } from '../base/core/secret.js';
import { backendIdentity } from './backend.js';

it('is equal for equal descriptions and differs with a setting or with the key of the server', () => {
  const spec = { type: 'tinker', url: 'http://localhost:8000' };
  const keyed = (text: string) => ({ ...spec, apiKey: new Secret(text) });
  const withKey = (text: string) => backendIdentity(keyed(text));
  expect(backendIdentity({ ...spec })).toBe(backendIdentity({ ...spec }));
  const elsewhere = { ...spec, url: 'http://localhost:8001' };
  expect(backendIdentity(elsewhere)).not.toBe(backendIdentity(spec));
  expect(withKey('one')).toBe(withKey('one'));
  expect(new Set([withKey('one'), withKey('two'), backendIdentity(spec)]).size).toBe(3);
});
