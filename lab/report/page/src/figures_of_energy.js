// Where the energy of runs goes, by part: what --energy has allocated, each run a bar.
import { merged, stacked } from './figures_of_rows.js';
import { short } from './numbers.js';

const kMostNamed = 4; // runs whose sums the note has

function sumOf(energy, several) {
  const [least, most] = energy.all_J_interval;
  const watts = `${short(energy.package_W)} W per package, ${short(energy.all_W_per_package)} W with its share of the machine`;
  return `${several ? `${energy.run}: ` : ''}All ${short(energy.all_J)} J, ${short(least)} to ${short(most)}; ${watts}`;
}

export function figuresOfEnergy({ document }) {
  const runs = document.energy ?? [];
  if (!runs.length) return [];
  const names = merged(runs.map(run => Object.keys(run.parts))).filter(name => runs.some(run => run.parts[name]?.J > 0));
  const sums = runs.slice(0, kMostNamed).map(run => sumOf(run, runs.length > 1));
  return [
    stacked({
      id: 'energy',
      title: 'Where the energy goes',
      unit: 'J',
      labels: runs.map(run => run.run),
      note: `Table ${runs[0].table}: ${runs[0].note}. ${sums.join('. ')}.`,
      names,
      value: (index, name) => runs[index].parts[name]?.J ?? 0,
    }),
  ];
}
