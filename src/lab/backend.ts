/** Door of `lab`: the backend of choice tables. */
export { table } from './table/table-backend.js';
