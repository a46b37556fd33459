import { afterAll } from 'vitest';
import { callsOfCaller } from '../../src/agents/attribution.js';
import { messageOf } from '../../src/core/errors.js';

// Files share their modules. An episode that a file leaves open would be one that calls of later files may belong to.
afterAll(() => {
  try {
    callsOfCaller();
  } catch (error) {
    throw new Error(`a test of this file leaves an episode open: ${messageOf(error)}`);
  }
});
