/** Door of `lab`: methods for which no measurement has shown a gain yet: policies as tables of choices. */

export { contextOf, tableSize } from './table/choice-table.js';
export { choiceTableModel } from './table/choice-table-schema.js';
