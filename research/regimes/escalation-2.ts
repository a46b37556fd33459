import { escalation } from './escalation.js';

export default escalation(2);
