/** Lets a thread of a test import TypeScript: test/support/start-worker.ts starts it with this file if it is asked to. */
import { register } from 'tsx/esm/api';

register();
