/*
 * node fleet_public_flights.mjs DIR: delays of departing flights by airport and 3 hours as CSV, from the packages in
 * DIR/vega-datasets, DIR/hyparquet and DIR/fzstd. A group is a division of the United States' census. Airports with fewer
 * than 20 flights a day are left out.
 */
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const dir = process.argv[2], step_ms = 3 * 3600e3, least = 20;
const from = (path) => import(pathToFileURL(`${dir}/${path}`).href);
const { asyncBufferFromFile, parquetReadObjects } = await from('hyparquet/src/node.js');
const { decompress } = await from('fzstd/esm/index.mjs');
const divisions = {
	'new-england': 'CT ME MA NH RI VT', 'middle-atlantic': 'NJ NY PA', 'east-north-central': 'IL IN MI OH WI',
	'west-north-central': 'IA KS MN MO NE ND SD', 'south-atlantic': 'DE DC FL GA MD NC SC VA WV',
	'east-south-central': 'AL KY MS TN', 'west-south-central': 'AR LA OK TX',
	mountain: 'AZ CO ID MT NV NM UT WY', pacific: 'AK CA HI OR WA',
};
const division = {};
for (const [name, states] of Object.entries(divisions))
	for (const state of states.split(' ')) division[state] = name;

// iata,name,city,state,country,latitude,longitude; a name may be quoted and contain commas.
const group = {};
for (const line of readFileSync(`${dir}/vega-datasets/data/airports.csv`, 'utf8').split('\n').slice(1)) {
	const field = line.match(/("[^"]*"|[^,]*)(,|$)/g)?.map((f) => f.replace(/,$/, '')) ?? [];
	if (division[field[3]]) group[field[0]] = division[field[3]];
}

const file = await asyncBufferFromFile(`${dir}/vega-datasets/data/flights-3m.parquet`);
const rows = await parquetReadObjects({ file, columns: ['date', 'delay', 'origin'], compressors: { ZSTD: (b) => decompress(b) } });
const cells = new Map(), flights = new Map();
for (const { date, delay, origin } of rows) {
	const time = Math.floor(Number(date) / step_ms) * step_ms, key = `${time},${origin}`;
	const cell = cells.get(key) ?? { time, origin, late: 0, n: 0 };
	cell.late += Math.max(0, Number(delay));
	cell.n++;
	cells.set(key, cell);
	flights.set(origin, (flights.get(origin) ?? 0) + 1);
}
const times = [...cells.values()].map((c) => c.time).sort((a, b) => a - b), days = (times.at(-1) - times[0]) / 864e5;
const out = ['# metric late_min unit=min worse=more kind=amount zero=value per=flights', '# metric flights worse=load', 'time,group,member,late_min,flights'];
for (const c of [...cells.values()].sort((a, b) => a.time - b.time || (a.origin < b.origin ? -1 : 1)))
	if (group[c.origin] && flights.get(c.origin) >= least * days) out.push(`${c.time / 1000},${group[c.origin]},${c.origin},${c.late},${c.n}`);
process.stdout.write(out.join('\n') + '\n');
