import { kernels as everyKernel } from '../../kernels/declarations.js';
import { type Region, table } from '../pages.js';

/** Every kernel of the manifest: what it computes, how it sums, and where both of its sources are. */
export const kernels: Region = {
  name: 'kernels',
  render() {
    const rows = everyKernel.map(({ name, header, reference, computes, sums }) => {
      const sources = [`[C++](../native/${header})`];
      if (reference !== undefined) sources.push(`[TypeScript](../src/tensor/reference/${reference})`);
      return [`\`${name}\``, computes, sums ?? '', sources.join(', ')];
    });
    return table(['kernel', 'what it computes', 'the order of its sums', 'source'], rows);
  },
};
