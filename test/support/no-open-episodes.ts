import { afterAll } from 'vitest';
import { messageOf } from '../../src/base/core/errors.js';
import { callsOfCaller } from '../../src/gateway/agents/attribution.js';

// Files share their modules. An episode that a file leaves open would be one that calls of later files may belong to.
afterAll(() => {
  try {
    callsOfCaller();
  } catch (error) {
    throw new Error(`a test of this file leaves an episode open: ${messageOf(error)}`);
  }
});
