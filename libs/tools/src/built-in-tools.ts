import { Aggregate } from './aggregate/aggregate.js';
import { Distinct } from './aggregate/distinct.js';
import { GroupBy } from './aggregate/group-by.js';
import { GroupByDate } from './aggregate/group-by-date.js';
import { CreateObject } from './create/create-object.js';
import { DeleteObject } from './delete/delete-object.js';
import { ListTools } from './discovery/list-tools.js';
import { ExportData } from './export/export-data.js';
import { CallMethod } from './mutation/call-method.js';
import { CountObjects } from './read/count-objects.js';
import { ExplainQuery } from './read/explain-query.js';
import { GetObject } from './read/get-object.js';
import { GetObjects } from './read/get-objects.js';
import { GetSampleObjects } from './read/get-sample-objects.js';
import { QueryClass } from './read/query-class.js';
import { GetAllSchemas } from './schema/get-all-schemas.js';
import { GetSchema } from './schema/get-schema.js';
import { CreateClass } from './schema-change/create-class.js';
import { DeleteClass } from './schema-change/delete-class.js';
import { AtlasAutocomplete } from './search/atlas-autocomplete.js';
import { AtlasFacetedSearch } from './search/atlas-faceted-search.js';
import { AtlasTextSearch } from './search/atlas-text-search.js';
import { FindSimilar } from './search/find-similar.js';
import { SemanticSearch } from './search/semantic-search.js';
import { UpdateObject } from './update/update-object.js';

/** Parley's own tools, in catalogue order. A new one is a file in the folder of its privilege, and a line here. */
export const BUILT_IN_TOOLS = [
  ListTools,
  GetAllSchemas,
  GetSchema,
  QueryClass,
  CountObjects,
  GetObject,
  GetObjects,
  GetSampleObjects,
  ExplainQuery,
  Aggregate,
  GroupBy,
  GroupByDate,
  Distinct,
  ExportData,
  CallMethod,
  AtlasTextSearch,
  AtlasAutocomplete,
  AtlasFacetedSearch,
  SemanticSearch,
  FindSimilar,
  CreateObject,
  UpdateObject,
  DeleteObject,
  CreateClass,
  DeleteClass,
] as const;
