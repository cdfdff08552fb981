import { render } from "preact";
import "./style.css";
import { createApi } from "./api.js";
import { Panels } from "./panels/index.jsx";

render(<Panels api={createApi()} session="main" live={{ subscribe: () => () => {} }} openSession={() => {}} onClose={() => {}} />, document.getElementById("page"));
