import fc from 'fast-check';
import mongoose, { Schema, type SchemaDefinition } from 'mongoose';
import { describe, expect, it } from 'vitest';
import { readConfig } from '#config';
import { declareClasses } from '@parley/server/mongoose';

const { ObjectId, Decimal128, UUID, Mixed, Int32, Double, Union } = Schema.Types;

let made = 0;
/** A model of its own connection: names are free. */
function modelOf(definition: SchemaDefinition | Schema, options: object = {}, name = 'Thing') {
  const schema = definition instanceof Schema ? definition : new Schema(definition, options);
  made += 1;
  return mongoose.createConnection().model(name, schema, `things${made}`);
}

const declared = (...given: Parameters<typeof modelOf>) => {
  const [declaration] = declareClasses([modelOf(...given)]);
  if (!declaration) throw new Error('no class');
  return declaration.config;
};

/** What the configuration says of the declarations: nothing. */
function assertAccepted(models: Parameters<typeof declareClasses>[0]) {
  const declarations = declareClasses(models);
  const { policy } = readConfig(
    { database: { storage: 'plain', uri: 'mongodb://127.0.0.1/shop' }, auth: [] },
    { declared: declarations },
  );
  expect(policy.classes.size).toBe(declarations.length);
  return policy;
}

describe('a Mongoose model', () => {
  it('is a class of its collection, with the types of its paths', () => {
    const config = declared({
      name: String,
      price: Decimal128,
      stock: Int32,
      weight: Double,
      views: BigInt,
      active: Boolean,
      opened: Date,
      photo: Buffer,
      labels: { type: Map, of: String },
      tags: [String],
      table: [[Number]],
    });
    expect(config.collection).toMatch(/^things\d+$/);
    expect(config).toMatchObject({ storage: 'plain', id: 'objectId', timestamps: null });
    expect(config.properties).toEqual({
      name: { type: 'String' },
      price: { type: 'Number' },
      stock: { type: 'Number' },
      weight: { type: 'Number' },
      views: { type: 'Number' },
      active: { type: 'Boolean' },
      opened: { type: 'Date' },
      photo: { type: 'Bytes' },
      labels: { type: 'Object' },
      tags: { type: 'Array' },
      table: { type: 'Array' },
    });
    expect(config.fields).toEqual(Object.keys(config.properties ?? {}));
  });

  it('has columns without a declared type where JSON is not what is stored', () => {
    const { properties } = declared({
      anything: Mixed,
      owner: ObjectId,
      device: UUID,
      ids: [ObjectId],
      list: [],
      any: { type: ObjectId, refPath: 'kind' },
    });
    for (const property of Object.values(properties ?? {})) expect(property).toEqual({});
    expect(Object.keys(properties ?? {})).toHaveLength(6);
  });

  it.each([
    ['objectId', ObjectId],
    ['string', String],
    ['number', Number],
    ['uuid', UUID],
  ])('has ids of the kind %s', (kind, type) => {
    expect(declared({ _id: type, name: String }).id).toBe(kind);
  });

  it('with an id that agents cannot be given is an error that names it', () => {
    const composite = modelOf({ _id: new Schema({ a: Number }, { _id: false }) }, {}, 'Composite');
    expect(() => declareClasses([composite])).toThrow(/Composite has an _id .*leave this model out/);
    const hidden = modelOf({ _id: { type: String, select: false } }, {}, 'Hidden');
    expect(() => declareClasses([hidden])).toThrow(TypeError);
  });

  it.each([
    ['has the names of Mongoose', true, { createdAt: 'createdAt', updatedAt: 'updatedAt' }],
    [
      'has names of its own',
      { createdAt: 'made', updatedAt: 'changed' },
      { createdAt: 'made', updatedAt: 'changed' },
    ],
    ['has one of them', { updatedAt: false }, { createdAt: 'createdAt', updatedAt: 'updatedAt' }],
    ['has none', false, null],
  ])('has time stamps: %s', (_title, timestamps, expected) => {
    const config = declared({ name: String }, { timestamps });
    expect(config.timestamps).toEqual(expected);
    expect(config.fields).toEqual(['name']);
  });

  it('never shows a time stamp that is hidden', () => {
    const config = declared({ name: String, createdAt: { type: Date, select: false }, updatedAt: Date });
    expect(config.timestamps).toBeNull();
    expect(config.fields).toEqual(['name']);
  });

  it('has pointers for references to models that are classes, and ids for others', () => {
    const connection = mongoose.createConnection();
    const customer = connection.model('Customer', new Schema({ _id: String }));
    const order = connection.model(
      'Order',
      new Schema({
        customer: { type: String, ref: 'Customer' },
        byModel: { type: String, ref: customer },
        others: [{ type: String, ref: 'Customer' }],
        lines: [{ by: { type: String, ref: 'Customer' }, sku: String }],
        audit: { type: ObjectId, ref: 'AuditLog' },
        chosen: { type: ObjectId, ref: () => 'Customer' },
      }),
    );
    const pointer = { type: 'Pointer', targetClass: 'Customer' };
    expect(declareClasses([customer, order])[1]?.config.properties).toEqual({
      customer: pointer,
      byModel: pointer,
      others: { type: 'Array', targetClass: 'Customer' },
      lines: { type: 'Array', of: { by: pointer, sku: { type: 'String' } } },
      audit: {},
      chosen: {},
    });
    assertAccepted(connection.models);
  });

  it('has the members of subdocuments and nested paths', () => {
    const address = new Schema({ city: String, geo: { lat: Number, lng: Number } });
    const { properties } = declared({ home: address, all: [address], deep: { er: { x: Number } } });
    const members = {
      city: { type: 'String' },
      geo: { type: 'Object', of: { lat: { type: 'Number' }, lng: { type: 'Number' } } },
    };
    expect(properties).toEqual({
      home: { type: 'Object', of: members },
      all: { type: 'Array', of: members },
      deep: { type: 'Object', of: { er: { type: 'Object', of: { x: { type: 'Number' } } } } },
    });
  });

  it('has the values of enums', () => {
    const { properties } = declared({
      status: { type: String, enum: ['open', 'paid'] },
      level: { type: Number, enum: [1, 2] },
    });
    expect(properties).toEqual({
      status: { type: 'String', enum: { open: null, paid: null } },
      level: { type: 'Number', enum: { 1: null, 2: null } },
    });
  });

  it('has no virtuals, no version and no column that is internal or named like one of every class', () => {
    const schema = new Schema({ name: { type: String, alias: 'title' }, ACL: String, objectId: String });
    schema.virtual('upper').get(() => '');
    expect(declared(schema).fields).toEqual(['name']);
  });

  it('has columns with an underscore under the name without it, unless that is taken', () => {
    const { properties } = declared({ _owner: String, _name: String, name: String });
    expect(properties).toEqual({ name: { type: 'String' }, owner: { type: 'String', field: '_owner' } });
  });
});

describe('a path that Mongoose does not select', () => {
  it.each<[string, unknown]>([
    ['false', false],
    ['0', 0],
    ['an empty text', ''],
    ['a text', 'false'],
    ['a number', 1],
    ['a function', () => true],
    ['a list', [false]],
  ])('is not readable where select is %s, which is no plain true', (_, select) => {
    const options = { type: String, select } as never;
    const config = declared({
      name: String,
      own: options,
      sub: { inner: options },
      list: [{ inner: options }],
    });
    expect(config.fields?.toSorted()).toEqual(['list', 'name', 'sub']);
    expect(config.masks).toEqual({ 'sub.inner': 'drop', 'list.inner': 'drop' });
  });

  it('is readable where select is true, or says nothing', () => {
    const shown = { a: { type: String, select: true }, b: { type: String, select: undefined } };
    expect(declared(shown as never).fields).toEqual(['a', 'b']);
  });

  it('is not readable where code or a plugin said so after the schema was made', () => {
    const schema = new Schema({
      name: String,
      own: String,
      shown: { type: String, select: false },
      home: new Schema({ inner: String }),
      list: [new Schema({ inner: String })],
      tags: [String],
    });
    schema.plugin((one) => {
      one.add({ added: { type: String, select: 0 } } as never);
      for (const path of ['own', 'home.inner', 'list.inner', 'tags']) one.path(path).select(false);
      // The declaration said otherwise: the stricter one holds.
      one.path('shown').select(true);
    });
    const config = declared(schema);
    expect(config.fields?.toSorted()).toEqual(['home', 'list', 'name']);
    expect(config.masks).toEqual({ 'home.inner': 'drop', 'list.inner': 'drop' });
  });

  it('hides the column where no mask can name it: in lists of lists, maps and unions', () => {
    const inner = new Schema({ seen: String, secret: { type: String, select: false } });
    // Mongoose refuses the option in the schema of a map, and code may set it afterwards.
    const value = new Schema({ seen: String, secret: String });
    const box = new Schema({ labels: { type: Map, of: value }, other: String });
    const schema = new Schema({
      name: String,
      table: [[inner]],
      cube: [[[{ deep: inner }]]],
      labels: { type: Map, of: value },
      nested: { type: Map, of: { type: Map, of: value } },
      either: { type: Union, of: [Number, inner] },
      eithers: [{ type: Union, of: [Number, inner] }],
      box,
      plain: { type: Map, of: Number },
      numbers: [[Number]],
    } as never);
    value.path('secret').select(false);
    const config = declared(schema);
    expect(config.fields?.toSorted()).toEqual(['box', 'name', 'numbers', 'plain']);
    expect(config.masks).toEqual({ 'box.labels': 'drop' });
  });

  it('hides the column of a schema that holds itself, and one that hides nothing is readable', () => {
    const node = new Schema({ name: String, secret: { type: String, select: false } });
    node.add({ children: [node] } as never);
    const open = new Schema({ name: String });
    open.add({ children: [open] } as never);
    expect(declared({ tree: node, open, name: String }).fields?.toSorted()).toEqual(['name', 'open']);
  });

  it('stays hidden behind an alias, a getter, a virtual and a transformation', () => {
    const schema = new Schema(
      {
        name: String,
        pin: { type: String, select: 0, alias: 'code', get: () => 'x' } as never,
        owner: { type: ObjectId, ref: 'Owner', select: 0 } as never,
      },
      { selectPopulatedPaths: true, toJSON: { transform: () => ({}) } },
    );
    schema.virtual('things', { ref: 'Thing', localField: 'pin', foreignField: '_id' });
    const config = declared(schema);
    expect(config.fields).toEqual(['name']);
    expect(config.masks).toBeUndefined();
  });
});

describe('a discriminator', () => {
  const connection = mongoose.createConnection();
  const base = connection.model('Event', new Schema({ at: Date }, { discriminatorKey: 'type' }));
  base.discriminator('Click', new Schema({ target: String }), 'click');
  base.discriminator('View', new Schema({ page: String }));

  it('is a class of its own columns and those of its base, in the collection of its base', () => {
    const classes = new Map(
      declareClasses(connection.models).map(({ className, config }) => [className, config]),
    );
    expect(classes.get('Event')).toMatchObject({ collection: 'events', fields: ['at', 'type'] });
    expect(classes.get('Event')).not.toHaveProperty('filters');
    const click = { collection: 'events', fields: ['at', 'target', 'type'], filters: { type: 'click' } };
    expect(classes.get('Click')?.fields?.toSorted()).toEqual(click.fields);
    expect(classes.get('Click')).toMatchObject({ ...click, fields: expect.any(Array) as unknown });
    expect(classes.get('View')).toMatchObject({ filters: { type: 'View' } });
    expect(classes.get('View')?.properties?.['type']).toMatchObject({ enum: { View: null } });
    assertAccepted(connection.models);
  });

  it('has a key of Mongoose that agents know as kind', () => {
    const own = mongoose.createConnection();
    own.model('Vehicle', new Schema({ wheels: Number })).discriminator('Car', new Schema({ doors: Number }));
    const [, car] = declareClasses(own.models);
    expect(car?.config).toMatchObject({ filters: { kind: 'Car' }, properties: { kind: { field: '__t' } } });
    assertAccepted(own.models);
  });

  it('hides from the class of its base what it hides itself', () => {
    const own = mongoose.createConnection();
    const meta = { a: String };
    const parent = own.model('Log', new Schema({ meta, text: String, tone: String }));
    parent.discriminator(
      'Login',
      new Schema({ meta: { token: { type: String, select: false } }, tone: { type: String, select: false } }),
    );
    const [log] = declareClasses([parent]);
    expect(log?.config.fields?.toSorted()).toEqual(['kind', 'meta', 'text']);
    expect(log?.config.masks).toEqual({ 'meta.token': 'drop' });
  });

  it('of a subdocument hides what it hides', () => {
    const step = new Schema({ at: Date }, { discriminatorKey: 'kind', _id: false });
    const schema = new Schema({ steps: [step], first: step });
    for (const path of ['steps', 'first'])
      (schema.path(path) as mongoose.Schema.Types.DocumentArray).discriminator(
        'Pay',
        new Schema({ card: { type: String, select: false } }, { _id: false }),
      );
    expect(declared(schema).masks).toEqual({ 'steps.card': 'drop', 'first.card': 'drop' });
  });

  it('whose key is hidden or cannot be named is an error', () => {
    const own = mongoose.createConnection();
    const parent = own.model('Page', new Schema({ kind: String }));
    const child = parent.discriminator('Post', new Schema({ text: String }));
    expect(() => declareClasses([child])).toThrow(/discriminator Post cannot be distinguished/);
  });
});

describe('declarations of models', () => {
  it('are narrowed by the policy, and never widened', () => {
    const model = modelOf({ name: String, cost: Number, key: { type: String, select: false } });
    const { policy } = readConfig(
      {
        database: { storage: 'plain', uri: 'mongodb://127.0.0.1/shop' },
        policy: { classes: { Thing: { description: 'a thing', fields: ['name', 'key'] } } },
        auth: [],
      },
      { declared: declareClasses([model]) },
    );
    expect(policy.classes.get('Thing')).toMatchObject({ description: 'a thing', fields: ['name'] });
  });

  it.each([
    ['nothing', undefined],
    ['a schema', [new Schema({})]],
    ['a document', [{ name: 'x' }]],
    ['a name', ['Order']],
  ])('are of models alone, and not of %s', (_title, given) => {
    expect(() => declareClasses(given as never)).toThrow(/expected connection\.models or a list/);
  });

  it('are never none by mistake: models that are made later are missed', () => {
    expect(() => declareClasses(mongoose.createConnection().models)).toThrow(
      /no model yet: inject the models/,
    );
  });

  /** A schema, and the paths in it that are hidden. */
  interface Drawn {
    readonly definition: SchemaDefinition;
    readonly hidden: readonly string[];
  }
  const name = fc.stringMatching(/^[a-z_][a-z_-]{0,5}$/).filter((text) => !['_id', 'id'].includes(text));
  const leaf = fc.constantFrom(String, Number, Date, ObjectId, Mixed);
  const drawn = (depth: number): fc.Arbitrary<Drawn> =>
    fc
      .dictionary(
        name,
        fc.record({
          hidden: fc.boolean(),
          select: fc.constantFrom<unknown>(false, 0, '', 'yes', 1),
          form: fc.constantFrom('leaf', 'list', 'subdocument', 'subdocuments', 'nested', 'lists', 'union'),
          type: leaf,
          below: depth === 0 ? fc.constant({ definition: {}, hidden: [] }) : drawn(depth - 1),
        }),
        { maxKeys: 3, noNullPrototype: true },
      )
      .map((paths) => {
        const definition: Record<string, unknown> = {};
        const all: string[] = [];
        for (const [path, { hidden, select: given, form, type, below }] of Object.entries(paths)) {
          const leafForm = form === 'leaf' || form === 'list' || Object.keys(below.definition).length === 0;
          const select = hidden ? { select: given } : {};
          if (leafForm) definition[path] = { type: form === 'list' ? [type] : type, ...select };
          else if (form === 'nested') definition[path] = below.definition;
          else {
            const schema = new Schema(below.definition);
            const types = {
              subdocument: { type: schema },
              subdocuments: { type: [schema] },
              lists: { type: [[schema]] },
              union: { type: Union, of: [Number, schema] },
            };
            definition[path] = { ...types[form as keyof typeof types], ...select };
          }
          if (hidden && (leafForm || form !== 'nested')) all.push(path);
          if (!leafForm) for (const inner of below.hidden) all.push(`${path}.${inner}`);
        }
        return { definition: definition as SchemaDefinition, hidden: all };
      });

  it('never make a path readable that the schema hides', () => {
    fc.assert(
      fc.property(drawn(3), ({ definition, hidden }) => {
        const model = modelOf(definition);
        const { fields = [], masks = {}, properties = {} } = declareClasses([model])[0]?.config ?? {};
        const nameOf = new Map(Object.entries(properties).map(([own, { field = own }]) => [field, own]));
        for (const path of hidden) {
          const [first = '', ...rest] = path.split('.');
          const own = nameOf.get(first);
          if (own === undefined || !fields.includes(own)) continue;
          const below = [own, ...rest];
          const masked = below.some((_, end) => masks[below.slice(0, end + 1).join('.')] === 'drop');
          expect(masked, `${path} of ${JSON.stringify({ fields, masks })}`).toBe(true);
        }
        expect(fields.toSorted()).toEqual(Object.keys(properties).toSorted());
        assertAccepted([model]);
      }),
      { numRuns: 150 },
    );
  });
});
