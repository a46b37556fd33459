import { kernels as everyKernel } from '../../kernels/declarations.js';
import { type Region, table } from '../pages.js';

/** All kernels of the manifest: their function, their order of summation, and their sources; the C++ ships. */
export const kernels: Region = {
  name: 'kernels',
  render() {
    const rows = everyKernel.map(({ name, header, reference, computes, sums }) => {
      const sources = [`[${header}](../native/${header})`, ...(reference === undefined ? [] : [reference])];
      return [`\`${name}\``, computes, sums ?? '', sources.join(', ')];
    });
    return table(['kernel', 'result', 'order of its sums', 'C++, TypeScript'], rows);
  },
};
