import { kernels as everyKernel } from '../../kernels/declarations.js';
import { type Region, table } from '../pages.js';

/** Every kernel of the manifest: what it computes, how it sums, and its sources, of which the C++ ships. */
export const kernels: Region = {
  name: 'kernels',
  render() {
    const rows = everyKernel.map(({ name, header, reference, computes, sums }) => {
      const sources = [`[${header}](../native/${header})`, ...(reference === undefined ? [] : [reference])];
      return [`\`${name}\``, computes, sums ?? '', sources.join(', ')];
    });
    return table(['kernel', 'what it computes', 'the order of its sums', 'C++, TypeScript'], rows);
  },
};
