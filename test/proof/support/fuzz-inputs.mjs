import {
  anyValue,
  edgeName,
  edgeNumber,
  edgeText,
  extendedJson,
  mutated,
  objectOf,
} from './seeded-random.mjs';

/*
 * Arguments of tools, filters and pipelines. They are made from the listed schemas and from the lists of what policy allows, so that a new
 * tool or operator is tried without a change here; then some are mutated.
 */

const WHERE_OPERATORS = [
  '$eq',
  '$ne',
  '$lt',
  '$lte',
  '$gt',
  '$gte',
  '$in',
  '$nin',
  '$all',
  '$containedIn',
  '$containsAll',
  '$exists',
  '$regex',
  '$nearSphere',
  '$geoWithin',
  '$inQuery',
  '$notInQuery',
  '$select',
  '$dontSelect',
];

/** Stands for the id of the change set that an answer has named last, where a call names one. */
export const SET_MARK = 'fuzzSetOfTheProposer';

export class FuzzInputs {
  /**
   * @param tools as `tools/list` lists them
   * @param seed whose classes, columns and ids the inputs name
   * @param operators `{ stages, match, total, partial }`: names that policy knows
   */
  constructor(tools, seed, operators) {
    this.tools = tools;
    this.operators = operators;
    this.columns = new Map(
      seed.schemas.map(({ className, fields }) => [
        className,
        Object.entries({
          objectId: { type: 'String' },
          createdAt: { type: 'Date' },
          updatedAt: { type: 'Date' },
          ...fields,
        }),
      ]),
    );
    this.classes = [...this.columns.keys()];
    this.rows = seed.objects;
  }

  rowsOf(className) {
    return Object.hasOwn(this.rows, className) ? this.rows[className] : [];
  }

  className(random) {
    return random.chance(0.93)
      ? random.pick(this.classes)
      : random.pick(['_User', '_Role', '_Session', 'Nothing', edgeText(random)]);
  }

  column(random, className) {
    const columns = this.columns.get(className) ?? this.columns.get('Listing');
    if (random.chance(0.06)) return [edgeName(random), { type: 'String' }];
    return random.pick(columns);
  }

  field(random, className) {
    const [name] = this.column(random, className);
    return random.chance(0.05) ? `${name}.${edgeName(random)}` : name;
  }

  id(random, className) {
    const rows = this.rowsOf(className);
    return random.chance(0.8) && rows.length > 0 ? random.pick(rows).objectId : edgeText(random);
  }

  /** A value that a column of this type may hold; sometimes one of a row. */
  valueOf(random, className, [name, { type, targetClass }]) {
    const rows = this.rowsOf(className);
    if (random.chance(0.04)) return extendedJson(random);
    if (rows.length > 0 && random.chance(0.4)) {
      const row = random.pick(rows);
      if (Object.hasOwn(row, name)) return row[name];
    }
    switch (type) {
      case 'Number':
        return edgeNumber(random);
      case 'Boolean':
        return random.chance(0.5);
      case 'Date':
        return this.date(random);
      case 'Pointer':
        return { __type: 'Pointer', className: targetClass, objectId: this.id(random, targetClass) };
      case 'GeoPoint':
        return this.point(random);
      case 'Array':
        return random.list(3, () => edgeText(random));
      case 'Object':
        return objectOf(random.list(3, () => [edgeName(random), anyValue(random, 1)]));
      default:
        return edgeText(random);
    }
  }

  date(random) {
    return random.weighted(
      [4, () => ({ __type: 'Date', iso: new Date(1.6e12 + random.below(3e11)).toISOString() })],
      [
        2,
        () => ({
          $relativeTime: random.pick(['7 days ago', 'in 2 hours', 'now', '1 year ago', edgeText(random)]),
        }),
      ],
      [1, () => ({ __type: 'Date', iso: edgeText(random) })],
      [1, () => edgeText(random)],
      [1, () => edgeNumber(random)],
    );
  }

  point(random) {
    const at = () => random.pick([0, 48.2, -90, 90, 180, -180, 181, 16.07, 1e308]);
    return { __type: 'GeoPoint', latitude: at(), longitude: at() };
  }

  where(random, className, depth = 2) {
    const entries = random.list(3, () =>
      depth > 0 && random.chance(0.2)
        ? [
            random.pick(['$and', '$or', '$nor']),
            random.list(3, () => this.where(random, className, depth - 1)),
          ]
        : this.condition(random, className, depth),
    );
    return objectOf(entries);
  }

  condition(random, className, depth) {
    const column = this.column(random, className);
    if (random.chance(0.35)) return [column[0], this.valueOf(random, className, column)];
    const entries = random
      .some(WHERE_OPERATORS, 2)
      .map((operator) => [operator, this.operand(random, className, column, operator, depth)]);
    return [column[0], objectOf(entries)];
  }

  operand(random, className, column, operator, depth) {
    const value = () => this.valueOf(random, className, column);
    switch (operator) {
      case '$in':
      case '$nin':
      case '$all':
      case '$containedIn':
      case '$containsAll':
        return random.list(random.chance(0.03) ? 2_000 : 4, value);
      case '$exists':
        return random.chance(0.9) ? random.chance(0.5) : anyValue(random, 0);
      case '$regex':
        return edgeText(random);
      case '$nearSphere':
        return this.point(random);
      case '$geoWithin':
        return random.pick([
          { $centerSphere: [this.point(random), edgeNumber(random)] },
          { $box: [this.point(random), this.point(random)] },
          { $polygon: random.list(5, () => this.point(random)) },
          { $geometry: anyValue(random) },
        ]);
      case '$inQuery':
      case '$notInQuery':
      case '$select':
      case '$dontSelect': {
        const other = column[1].targetClass ?? this.className(random);
        const query = { className: other, where: depth > 0 ? this.where(random, other, depth - 1) : {} };
        return operator.endsWith('Query') ? query : { query, key: this.field(random, other) };
      }
      default:
        return value();
    }
  }

  expression(random, className, depth = 2) {
    if (depth <= 0 || random.chance(0.4))
      return random.weighted(
        [6, () => `$${this.field(random, className)}`],
        [2, () => edgeNumber(random)],
        [2, () => ({ $literal: anyValue(random, 1) })],
        [1, () => edgeText(random)],
        [
          1,
          () =>
            random.pick([
              '$$ROOT',
              '$$NOW',
              '$$CURRENT',
              '$$REMOVE',
              '$$this',
              '$$user_roles',
              '$$CURRENT.price',
            ]),
        ],
      );
    const inner = () => this.expression(random, className, depth - 1);
    return random.weighted(
      [6, () => ({ [random.pick(this.operators.total)]: random.chance(0.7) ? [inner(), inner()] : inner() })],
      [
        4,
        () => ({ [random.pick(this.operators.partial)]: random.chance(0.6) ? [inner(), inner()] : inner() }),
      ],
      [2, () => ({ $cond: [inner(), inner(), inner()] })],
      [1, () => ({ $dateToString: { date: inner(), format: edgeText(random), timezone: edgeText(random) } })],
      [
        1,
        () => ({ $map: { input: inner(), as: random.pick(['x', 'this', edgeName(random)]), in: inner() } }),
      ],
      [
        1,
        () => ({
          $reduce: { input: inner(), initialValue: inner(), in: { $concatArrays: ['$$value', ['$$this']] } },
        }),
      ],
      [
        1,
        () => ({ $let: { vars: objectOf([[random.pick(['v', edgeName(random)]), inner()]]), in: inner() } }),
      ],
      [
        1,
        () => ({
          $switch: {
            branches: [
              objectOf([
                ['case', inner()],
                ['then', inner()],
              ]),
            ],
            default: inner(),
          },
        }),
      ],
      [1, () => ({ $range: [0, random.pick([3, 1_000, edgeNumber(random)])] })],
      [1, () => ({ $regexMatch: { input: inner(), regex: edgeText(random) } })],
    );
  }

  match(random, className, depth = 2) {
    const entries = random.list(3, () =>
      random.weighted(
        [5, () => this.condition(random, className, 0)],
        [2, () => ['$expr', this.expression(random, className, depth)]],
        [
          1,
          () => [
            random.pick(['$and', '$or', '$nor']),
            depth > 0 ? [this.match(random, className, depth - 1)] : [{}],
          ],
        ],
        [
          2,
          () => {
            const column = this.column(random, className);
            return [
              column[0],
              objectOf([[random.pick(this.operators.match), this.valueOf(random, className, column)]]),
            ];
          },
        ],
      ),
    );
    return objectOf(entries);
  }

  accumulators(random, className) {
    const names = [
      '$sum',
      '$avg',
      '$min',
      '$max',
      '$first',
      '$last',
      '$push',
      '$addToSet',
      '$count',
      '$stdDevPop',
      '$mergeObjects',
    ];
    return random.list(2, (_, at) => {
      const name = random.pick(names);
      return [
        `made${at ?? random.below(9)}`,
        { [name]: name === '$count' ? {} : this.expression(random, className, 1) },
      ];
    });
  }

  stage(random, className, depth = 1) {
    const name = random.pick(this.operators.stages);
    return { [name]: this.stageValue(random, className, name, depth) };
  }

  stageValue(random, className, name, depth) {
    const field = () => this.field(random, className);
    const inner = (of) => (depth > 0 ? this.pipeline(random, of, depth - 1, 3) : [{ $limit: 2 }]);
    const other = this.className(random);
    switch (name) {
      case '$match':
        return this.match(random, className);
      case '$group':
        return objectOf([
          ['_id', random.chance(0.2) ? null : this.expression(random, className, 1)],
          ...this.accumulators(random, className),
        ]);
      case '$sort':
        return objectOf(
          random
            .some([0, 1, 2], 2)
            .map(() => [field(), random.pick([1, -1, 1, -1, { $meta: 'textScore' }, edgeNumber(random)])]),
        );
      case '$project':
      case '$addFields':
      case '$set':
        return objectOf(
          random
            .some([0, 1, 2], 3)
            .map(() => [
              field(),
              random.chance(0.4) ? random.pick([1, 0, true]) : this.expression(random, className),
            ]),
        );
      case '$limit':
      case '$skip':
        return random.chance(0.8) ? 1 + random.below(20) : edgeNumber(random);
      case '$sample':
        return { size: random.chance(0.8) ? 1 + random.below(20) : edgeNumber(random) };
      case '$count':
        return random.pick(['n', edgeName(random)]);
      case '$unset':
        return random.chance(0.5) ? field() : [field(), field()];
      case '$unwind':
        return random.chance(0.5)
          ? `$${field()}`
          : { path: `$${field()}`, preserveNullAndEmptyArrays: random.chance(0.5) };
      case '$lookup':
        return random.chance(0.6)
          ? {
              from: other,
              localField: field(),
              foreignField: this.field(random, other),
              as: random.pick(['joined', edgeName(random)]),
            }
          : { from: other, let: { v: `$${field()}` }, pipeline: inner(other), as: 'joined' };
      case '$graphLookup':
        return {
          from: other,
          startWith: `$${field()}`,
          connectFromField: this.field(random, other),
          connectToField: this.field(random, other),
          as: 'all',
          maxDepth: random.pick([0, 1, 3, edgeNumber(random)]),
        };
      case '$unionWith':
        return random.chance(0.3) ? other : { coll: other, pipeline: inner(other) };
      case '$facet':
        return objectOf(random.some(['a', 'b', edgeName(random)], 2).map((one) => [one, inner(className)]));
      case '$bucket':
        return {
          groupBy: this.expression(random, className, 1),
          boundaries: random.pick([[0, 10, 100], ['a', 'b'], [3, 1], anyValue(random, 1)]),
          default: random.pick(['other', -1, null]),
          output: objectOf(this.accumulators(random, className)),
        };
      case '$bucketAuto':
        return {
          groupBy: this.expression(random, className, 1),
          buckets: random.pick([1, 5, edgeNumber(random)]),
        };
      case '$sortByCount':
        return this.expression(random, className, 1);
      case '$replaceRoot':
        return {
          newRoot: random.pick(['$$ROOT', { a: this.expression(random, className, 1) }, `$${field()}`]),
        };
      case '$replaceWith':
        return random.pick(['$$ROOT', { a: this.expression(random, className, 1) }, `$${field()}`]);
      case '$redact':
        return random.pick([
          '$$KEEP',
          '$$PRUNE',
          { $cond: [this.expression(random, className, 1), '$$KEEP', '$$PRUNE'] },
        ]);
      default:
        return anyValue(random);
    }
  }

  pipeline(random, className, depth = 1, longest = 4) {
    return Array.from({ length: 1 + random.below(longest) }, () => this.stage(random, className, depth));
  }

  /** A call of a listed tool: as its schema wants it, nearly so, or anything. */
  call(random) {
    const tool = random.pick(this.tools);
    const args = this.argumentsOf(random, tool);
    const made = random.weighted(
      [5, () => args],
      [3, () => mutated(random, args, 1, true)],
      [1, () => mutated(random, args, 1 + random.below(4))],
      [0.5, () => anyValue(random)],
    );
    return { name: random.chance(0.99) ? tool.name : edgeName(random), arguments: made };
  }

  /** A write of one row, as the schema of its tool wants it. */
  write(random) {
    const tool = random.pick(this.tools.filter(({ name }) => /^(?:create|update|delete)_object$/.test(name)));
    return { name: tool.name, arguments: this.argumentsOf(random, tool) };
  }

  argumentsOf(random, { name, inputSchema }) {
    /** @type {{ properties?: Record<string, any>, required?: string[] }} */
    const { properties = {}, required = [] } = inputSchema;
    const classes = properties.class_name?.enum;
    const className = classes && random.chance(0.95) ? random.pick(classes) : this.className(random);
    const chosen = Object.keys(properties).filter((key) => required.includes(key) || random.chance(0.35));
    return objectOf(chosen.map((key) => [key, this.argument(random, name, key, properties[key], className)]));
  }

  argument(random, tool, key, schema, className) {
    switch (key) {
      case 'class_name':
        return tool === 'create_class' || tool === 'delete_class'
          ? random.pick(['Made', 'Made2', `Made${random.below(30)}`, edgeName(random)])
          : className;
      case 'where':
      case 'filter':
      case 'vector_filter':
        return this.where(random, className);
      case 'pipeline':
        return this.pipeline(random, className);
      case 'object_id':
        return this.id(random, className);
      case 'change_set':
        return random.chance(0.8) ? SET_MARK : edgeText(random);
      case 'ids':
        return random.list(random.chance(0.03) ? 60 : 4, () => this.id(random, className));
      case 'field':
      case 'value_field':
      case 'highlight_field':
        return this.field(random, className);
      case 'keys':
      case 'fields':
        if (schema.type === 'object') return this.written(random, className);
        return random.list(4, () => this.field(random, className));
      case 'include':
        return random.list(2, () => this.field(random, className));
      case 'data':
        return this.written(random, className);
      case 'order':
        return random.list(2, () => random.pick(['', '-']) + this.field(random, className)).join(',');
      case 'names':
        return random.list(3, () => this.className(random));
      case 'timezone':
        return random.pick(['UTC', 'Europe/Vienna', '+02:00', edgeText(random)]);
      case 'limit':
      case 'skip':
      case 'row_cap':
      case 'k':
        return random.chance(0.8) ? 1 + random.below(20) : edgeNumber(random);
      default:
        return this.ofSchema(random, schema);
    }
  }

  written(random, className) {
    return objectOf(
      random.list(4, () => {
        const column = this.column(random, className);
        const value = this.valueOf(random, className, column);
        const operation = () => ({
          __op: random.pick(['Increment', 'Add', 'AddUnique', 'Remove', 'Delete', edgeName(random)]),
          ...(random.chance(0.5) && { amount: edgeNumber(random) }),
          ...(random.chance(0.5) && { objects: [value] }),
        });
        return [column[0], random.chance(0.25) ? operation() : value];
      }),
    );
  }

  ofSchema(random, schema) {
    if (schema === undefined || schema === true) return anyValue(random);
    if (schema.enum && random.chance(0.95)) return random.pick(schema.enum);
    if (schema.anyOf) return this.ofSchema(random, random.pick(schema.anyOf));
    switch (schema.type) {
      case 'string':
        return edgeText(random);
      case 'integer':
      case 'number':
        return random.chance(0.6) ? 1 + random.below(20) : edgeNumber(random);
      case 'boolean':
        return random.chance(0.5);
      case 'array':
        return random.list(4, () => this.ofSchema(random, schema.items));
      case 'object':
        return objectOf(
          Object.entries(schema.properties ?? {}).map(([key, one]) => [key, this.ofSchema(random, one)]),
        );
      default:
        return anyValue(random);
    }
  }

  /** A pipeline or a filter, each in a tool that takes it. */
  query(random) {
    const className = random.pick(this.classes.filter((name) => name !== 'SupplierContract'));
    const made = (value) =>
      random.weighted(
        [6, () => value],
        [3, () => mutated(random, value, 1, true)],
        [1, () => mutated(random, value, 3)],
      );
    if (random.chance(0.6)) {
      const pipeline = made(this.pipeline(random, className, 2, 5));
      return random.chance(0.85)
        ? { name: 'aggregate', arguments: { class_name: className, pipeline } }
        : {
            name: 'export_data',
            arguments: { class_name: className, pipeline, format: random.pick(['csv', 'ndjson', 'table']) },
          };
    }
    const where = made(this.where(random, className, 3));
    const name = random.pick([
      'query_class',
      'count_objects',
      'explain_query',
      'group_by',
      'distinct',
      'export_data',
    ]);
    const field = name === 'group_by' || name === 'distinct' ? { field: this.field(random, className) } : {};
    return { name, arguments: { class_name: className, where, ...field } };
  }
}
